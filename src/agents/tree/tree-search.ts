import type { Awaitable, EnvironmentFactory } from '../../envs/contracts.ts';
import { branchWeights, leaves, type Outcome } from '../../episode/episode.ts';
import type { Task } from '../../episode/task.ts';
import type { Executor } from '../contracts.ts';
import { type MultiTurnOptions, multiTurn } from '../multi-turn.ts';
import { recordEpisode, type Session } from '../session.ts';
import { turnLimits } from '../turns.ts';
import { type Branch, Grower } from './branch.ts';
import { uncertainty } from './entropy.ts';

export const SEARCH_STRATEGIES = ['turns', 'entropy', 'best-first'] as const;
export type SearchStrategy = (typeof SEARCH_STRATEGIES)[number];

export interface Guided {
  readonly task: Task;
  /** Everything the policy would be shown, decoded. */
  readonly text: string;
  /** Answers so far. */
  readonly turn: number;
  /** Sum of the rewards so far. */
  readonly reward: number;
}

export interface TreeSearchOptions extends Pick<MultiTurnOptions, 'maxTurns' | 'maxNewTokens'> {
  /**
   * turns        every answer is sampled `branches` times, for the first `depth` turns
   * entropy      `branches` chains; then in each of `rounds` the `points` most undecided tokens of the tree are found
   *              and the answer is sampled anew from there (EPTree, https://arxiv.org/abs/2506.11902)
   * best-first   `branches` answers in the state that the guide rates highest, as long as the budget lasts
   */
  readonly strategy: SearchStrategy;
  /** 2 when not given. */
  readonly branches?: number | undefined;
  /** 2 when not given. */
  readonly depth?: number | undefined;
  /** 1 when not given. */
  readonly rounds?: number | undefined;
  /** 2 when not given. */
  readonly points?: number | undefined;
  /**
   * entropy: log-probabilities at each token from which its entropy is estimated; 0 goes by that of the drawn token
   * alone. 20 when not given.
   */
  readonly topLogprobs?: number | undefined;
  /** Tokens sampled in the whole tree: nothing new is begun when they are spent. No limit when not given. */
  readonly budget?: number | undefined;
  /** Rates a state, higher is better; the reward so far when not given. */
  readonly guide?: ((state: Guided) => Awaitable<number>) | undefined;
}

/**
 * Several attempts at a task as one tree that shares what they have in common: what is shared is sampled once. Its
 * leaves are alternatives (`Episode.leaves`), which every estimator compares; the score is the mean over them. Branch
 * points are never chosen by how an attempt ended, so the mean over the leaves stays unbiased; `best-first` looks at
 * the rewards before the end and does not claim that.
 *
 * Environments are copied with their `fork`, or by taking the same actions again in a new one. Metrics: `tree_leaves`,
 * `tree_tokens` (sampled), `best_score` of a leaf; those of the environment are means over the leaves like the score.
 * @throws RangeError for options that no tree has
 */
export function treeSearch(factory: EnvironmentFactory, options: TreeSearchOptions): Executor {
  const { strategy, branches = 2, depth = 2, rounds = 1, points = 2, budget = Infinity } = options;
  if (!SEARCH_STRATEGIES.includes(strategy)) {
    throw new RangeError(`the search strategy is ${JSON.stringify(strategy)}; known: ${SEARCH_STRATEGIES.join(', ')}`);
  }
  for (const [name, value] of Object.entries({ branches, depth, rounds, points, budget })) {
    if (!(value >= 1)) throw new RangeError(`tree search: ${name} is ${value}; expected 1 or more`);
  }
  if (strategy === 'best-first' && budget === Infinity) {
    throw new RangeError('best-first search needs a budget of tokens, or it would visit every state');
  }
  return {
    name: 'tree',
    single: multiTurn(factory, options),
    run: (task, context) =>
      recordEpisode(task, context, async session => {
        session.leaves = 'alternatives';
        const revisits = strategy === 'entropy';
        const known = revisits ? Math.min(options.topLogprobs ?? 20, context.renderer.vocabularySize) : 0;
        const grower = new Grower(session, factory, turnLimits(options, context), { revisits, topLogprobs: known });
        await STRATEGIES[strategy](grower, session, { branches, depth, rounds, points, budget, guide: options.guide });
        return summarize(session, grower);
      }),
  };
}

interface Shape extends Pick<TreeSearchOptions, 'guide'> {
  readonly branches: number;
  readonly depth: number;
  readonly rounds: number;
  readonly points: number;
  readonly budget: number;
}

const STRATEGIES: Readonly<Record<SearchStrategy, (grower: Grower, session: Session, shape: Shape) => Promise<void>>> =
  {
    async turns(grower, _, { branches, depth, budget }) {
      let live = [await grower.root()];
      for (let level = 0; live.length > 0; level++) {
        if (level < depth && grower.sampled < budget) {
          live = (await Promise.all(live.map(branch => grower.fork(branch, branches)))).flat();
        }
        live = await grower.advance(live);
      }
    },

    async entropy(grower, _, { branches, rounds, points, budget }) {
      await grower.finish(await grower.fork(await grower.root(), branches));
      for (let round = 0; round < rounds && grower.sampled < budget; round++) {
        const grown: Branch[] = [];
        for (const { segment, places } of undecided(grower, points)) {
          // From the beginning on: each cut leaves the later places in the rest.
          let [holder, before] = [segment, 0];
          for (const at of places) {
            const { branch, rest } = await grower.regrow(holder, at - before);
            grown.push(branch);
            [holder, before] = [rest, at];
          }
        }
        await grower.finish(grown);
      }
    },

    async 'best-first'(grower, session, { branches, budget, guide }) {
      const root = await grower.root();
      let frontier = [{ branch: root, rating: 0 }];
      while (frontier.length > 0 && grower.sampled < budget) {
        const best = frontier.reduce((a, b) => (b.rating > a.rating ? b : a));
        frontier = frontier.filter(one => one !== best);
        const grown = await grower.advance(await grower.fork(best.branch, branches));
        for (const branch of grown) frontier.push({ branch, rating: await rate(session, branch, guide) });
      }
    },
  };

/**
 * The places where the policy was least decided, at most `points`, by segment, in ascending order. A first token that
 * has siblings was a branch point before.
 */
function undecided({ origins }: Grower, points: number): { readonly segment: number; readonly places: number[] }[] {
  const all = [...origins].flatMap(([segment, { answer, hasSiblings }]) =>
    Array.from(uncertainty(answer.generation), (value, at) => ({ segment, at, value })).slice(hasSiblings ? 1 : 0),
  );
  all.sort((a, b) => b.value - a.value || a.segment - b.segment || a.at - b.at);
  const chosen = new Map<number, number[]>();
  for (const { segment, at } of all.slice(0, points)) chosen.set(segment, [...(chosen.get(segment) ?? []), at]);
  return [...chosen]
    .sort(([a], [b]) => a - b)
    .map(([segment, places]) => ({ segment, places: places.sort((a, b) => a - b) }));
}

async function rate(session: Session, { state, reward }: Branch, guide: TreeSearchOptions['guide']): Promise<number> {
  if (guide === undefined) return reward;
  const shown = { task: session.task, text: session.textUpTo(state.leaf), turn: state.turn, reward };
  return session.call('reward', 'the guide of the search', async () => {
    const rating = await guide(shown);
    if (!Number.isFinite(rating)) throw new Error(`it rated a state ${rating}; expected a finite number`);
    return rating;
  });
}

/** Sets score and metrics. The episode is done if any path is; paths that were left where they stood have no say. */
function summarize(session: Session, { ended, sampled }: Grower): Outcome {
  const { recorder } = session;
  const renamed = recorder.arrange();
  const { segments, steps } = recorder;
  const weights = branchWeights(segments);
  for (const { segment, metrics = {} } of steps) {
    const shares = Object.entries(metrics).map(([name, value]) => [name, weights[segment]! * value] as const);
    session.addMetrics(Object.fromEntries(shares));
  }
  const ends = [...ended.values()];
  const scores = ends.map(({ reward, score }) => score ?? reward);
  session.addMetrics({
    turns: steps.length,
    tree_leaves: leaves(segments).length,
    tree_tokens: sampled,
    ...(scores.length > 0 ? { best_score: Math.max(...scores) } : {}),
  });
  // The rewards say it all where the environment gives no score of its own.
  if (ends.some(({ score }) => score !== undefined)) {
    session.score = [...ended].reduce(
      (sum, [segment, { reward, score }]) => sum + weights[renamed.get(segment)!]! * (score ?? reward),
      0,
    );
  }
  const { outcome } = ends.find(end => end.outcome.kind === 'done') ?? ends[0] ?? {};
  return outcome ?? { kind: 'truncated', reason: 'tokens' };
}
