import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GenerateRequest } from '../../engines/contracts.ts';
import type { Environment } from '../../envs/contracts.ts';
import { type Episode, episodeReward } from '../../episode/episode.ts';
import type { Task } from '../../episode/task.ts';
import { SOURCE, toTrajectories } from '../../episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../../episode/validate.ts';
import { BYTE_SPECIAL, byteRenderer } from '../../testing/byte-tokenizer.ts';
import { testContext } from '../../testing/executor-context.ts';
import { uncertainty } from './entropy.ts';
import { type TreeSearchOptions, treeSearch } from './tree-search.ts';

const task: Task = { id: 't', prompt: 'go', label: 'L', metadata: {} };
const renderer = byteRenderer();

/** A pseudorandom number in [0, 1) of what the policy has seen: any token out of place changes it. */
function hash(tokens: Iterable<number>): number {
  let state = 2166136261;
  for (const token of tokens) state = Math.imul(state ^ token, 16777619) >>> 0;
  return (Math.imul(state, 2654435761) >>> 0) / 2 ** 32;
}

const logprobOf = (context: readonly number[]) => -0.05 - 3 * hash(context);

/** One to four letters that depend on context and seed; log-probabilities that depend on the context alone. */
function* letters({ tokens, seed, params }: GenerateRequest) {
  const context = [...tokens];
  const length = 1 + Math.floor(4 * hash([...context, seed]));
  for (let i = 0; i < Math.min(length, params.maxTokens); i++) {
    const last = i === length - 1;
    const token = last ? BYTE_SPECIAL.end : 97 + Math.floor(20 * hash([...context, seed, i]));
    yield { token, logprob: Math.fround(logprobOf(context)) };
    context.push(token);
  }
}

/** Three turns; a turn is worth the letters `a` to `j` of its answer. */
function counting(log: string[] = [], copies = false): () => Environment {
  const make = (turns: string[]): Environment => ({
    reset: () => ({ observation: 'Q', stateKey: 's' }),
    step({ actionText, observationText }) {
      turns.push(actionText);
      log.push(`${observationText}|${actionText}`);
      const reward = [...actionText].filter(letter => letter < 'k').length;
      return { reward, done: turns.length === 3, feedback: `<${turns.join(',')}>`, metrics: { value: reward } };
    },
    ...(copies ? { fork: () => make([...turns]) } : {}),
  });
  return () => make([]);
}

async function run(options: TreeSearchOptions, factory = counting(), maxTurns = 8) {
  const context = testContext({ answers: letters, renderer, limits: { maxTurns } });
  const episode = await treeSearch(factory, options).run(task, context);
  return { episode, context };
}

/** Structure, and that every sampled token stands behind what the policy had seen when it drew it. */
function check(episode: Episode): void {
  expect(episode.outcome).toMatchObject({ kind: expect.stringMatching(/done|truncated/) });
  validateEpisode(episode, { vocabularySize: renderer.vocabularySize });
  for (const trajectory of toTrajectories(episode)) {
    validateTrajectory(trajectory);
    for (const [t, source] of trajectory.sources.entries()) {
      if (source !== SOURCE.policy) continue;
      expect(trajectory.logprobs[t]).toBe(Math.fround(logprobOf([...trajectory.tokens.subarray(0, t)])));
    }
  }
}

const sampledTokens = ({ segments }: Episode) =>
  segments.reduce((sum, { source, tokens }) => (source === 'policy' ? sum + tokens.length : sum), 0);

describe('treeSearch', () => {
  it('turns: branches the first turns and goes on as chains', async () => {
    const { episode, context } = await run({ strategy: 'turns', branches: 2, depth: 2 });
    check(episode);
    expect(episode.leaves).toBe('alternatives');
    expect(toTrajectories(episode)).toHaveLength(4);
    expect(episode.metrics).toMatchObject({ tree_leaves: 4, turns: 2 + 4 + 4, tree_tokens: sampledTokens(episode) });
    expect(context.sampler.requests).toHaveLength(10);
    // A shared turn is sampled once: its four children ask with the same context.
    expect(toTrajectories(episode).every(({ steps }) => steps.length === 3)).toBe(true);
  });

  it('scores the mean over the leaves, and shares out the metrics of the environment alike', async () => {
    const { episode } = await run({ strategy: 'turns', branches: 3, depth: 1 });
    const returns = toTrajectories(episode).map(({ steps }) => steps.reduce((sum, { reward }) => sum + reward, 0));
    const mean = returns.reduce((a, b) => a + b) / 3;
    expect(episodeReward(episode)).toBeCloseTo(mean, 12);
    expect(episode.score).toBeCloseTo(mean, 12);
    expect(episode.metrics.value).toBeCloseTo(mean, 12);
    expect(episode.metrics.best_score).toBe(Math.max(...returns));
  });

  it('entropy: samples anew from the least decided tokens, inside answers too', async () => {
    const { episode } = await run({ strategy: 'entropy', branches: 1, rounds: 1, points: 2, topLogprobs: 0 });
    check(episode);
    expect(toTrajectories(episode)).toHaveLength(3);
    const first = (await run({ strategy: 'turns', branches: 1, depth: 1 })).episode;
    const chain = toTrajectories(first)[0]!;
    // The two least probable tokens of the chain are where its copies part from it.
    const drawn = [...chain.logprobs.entries()].filter(([, logprob]) => !Number.isNaN(logprob));
    const chosen = drawn
      .sort((a, b) => a[1] - b[1])
      .slice(0, 2)
      .map(([t]) => t);
    const shared = toTrajectories(episode).map(({ shared }) => shared);
    const parts = new Set(
      shared.flatMap(counts => [...counts.keys()].filter(t => t > 0 && counts[t]! < counts[t - 1]!)),
    );
    expect([...parts].sort()).toEqual(chosen.sort());
  });

  it('entropy: tells environments the whole answer, with what was before it', async () => {
    const log: string[] = [];
    await run({ strategy: 'entropy', branches: 1, rounds: 2, points: 3 }, counting(log));
    for (const line of log) {
      const cut = line.lastIndexOf('|');
      const [observation, action] = [line.slice(0, cut), line.slice(cut + 1)];
      expect(observation).toMatch(/^Q(?:[a-t]*<\|im_end\|><[a-t,]*>)*$/);
      expect(action).toMatch(/^[a-t]*$/);
    }
  });

  it('best-first: goes on where the guide says', async () => {
    const seen: number[] = [];
    const guide: TreeSearchOptions['guide'] = ({ turn, text, reward }) => {
      expect(text).toMatch(/^Q.*>$/);
      seen.push(reward);
      return -turn;
    };
    const broad = await run({ strategy: 'best-first', branches: 2, budget: 30, guide });
    check(broad.episode);
    expect(seen.length).toBeGreaterThan(0);
    const deep = await run({ strategy: 'best-first', branches: 2, budget: 30, guide: ({ turn }) => turn });
    check(deep.episode);
    // The third state to be expanded: a child of the second, or its sibling.
    const turnsBefore = ({ context }: typeof deep) =>
      renderer.decode(context.sampler.requests[4]!.tokens).split('<').length - 1;
    expect([turnsBefore(broad), turnsBefore(deep)]).toEqual([1, 2]);
    check((await run({ strategy: 'best-first', branches: 2, budget: 20 })).episode);
  });

  it.each<TreeSearchOptions>([
    { strategy: 'turns', branches: 2, depth: 8, budget: 12 },
    { strategy: 'entropy', branches: 2, rounds: 50, points: 1, budget: 40 },
  ])('begins nothing new when the budget is spent: $strategy', async options => {
    const { episode } = await run(options);
    check(episode);
    const { budget = 0 } = options;
    expect(sampledTokens(episode)).toBeGreaterThanOrEqual(budget);
    // A round that was begun may end: at most 8 paths of 3 turns of 4 tokens here.
    expect(sampledTokens(episode)).toBeLessThan(budget + 96);
  });

  it('copies an environment that can be copied, and takes turns again in one that cannot', async () => {
    const [copied, replayed]: [string[], string[]] = [[], []];
    const options = { strategy: 'entropy', branches: 2, rounds: 2, points: 2 } as const;
    const one = await run(options, counting(copied, true));
    const other = await run(options, counting(replayed));
    expect(one.episode).toEqual(other.episode);
    expect(copied).toHaveLength(
      new Set(one.episode.steps.map(({ segment }) => segment)).size - beginnings(one.episode),
    );
    expect(replayed.length).toBeGreaterThan(copied.length);
  });

  it('fails when a turn taken again goes otherwise', async () => {
    let steps = 0;
    const factory = () => ({
      reset: () => ({ observation: 'Q' }),
      step: () => ({ reward: 0, done: false, feedback: `${steps++}` }),
    });
    const { episode } = await run({ strategy: 'turns', branches: 2, depth: 2 }, factory, 3);
    expect(episode.outcome).toMatchObject({
      kind: 'failed',
      failure: 'environment',
      message: expect.stringMatching(/turn 0 taken again gave .* or have fork\(\)/),
    });
  });

  it('closes every environment', async () => {
    let [made, closed] = [0, 0];
    const factory = () => {
      made += 1;
      return {
        ...counting()(),
        close: () => {
          closed += 1;
        },
      };
    };
    await run({ strategy: 'entropy', branches: 2, rounds: 1, points: 2 }, factory);
    expect(made).toBeGreaterThan(2);
    expect(closed).toBe(made);
  });

  it.each<[Partial<TreeSearchOptions>, string]>([
    [{ strategy: 'wide' as never }, 'the search strategy is "wide"; known: turns, entropy, best-first'],
    [{ branches: 0 }, 'branches is 0; expected 1 or more'],
    [{ budget: Number.NaN }, 'budget is NaN'],
    [{ strategy: 'best-first' }, 'best-first search needs a budget'],
  ])('refuses %o', (options, message) => {
    expect(() => treeSearch(counting(), { strategy: 'turns', ...options })).toThrow(message);
  });

  it('records trees that are what the policy saw, whatever the shape', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          strategy: fc.constantFrom('turns' as const, 'entropy' as const, 'best-first' as const),
          branches: fc.integer({ min: 1, max: 3 }),
          depth: fc.integer({ min: 1, max: 3 }),
          rounds: fc.integer({ min: 1, max: 3 }),
          points: fc.integer({ min: 1, max: 4 }),
          budget: fc.integer({ min: 1, max: 60 }),
        }),
        fc.integer({ min: 1, max: 4 }),
        fc.boolean(),
        async (options, maxTurns, copies) => {
          const { episode, context } = await run(options, counting([], copies), maxTurns);
          check(episode);
          const sampled = context.sampler.requests.length;
          expect(episode.steps.length - beginnings(episode)).toBe(sampled);
          expect(episode.metrics.tree_tokens).toBe(sampledTokens(episode));
        },
      ),
      { numRuns: 150 },
    );
  });
});

/** Steps of the beginnings of answers that were cut in two. */
function beginnings({ segments, steps }: Episode): number {
  return steps.filter(({ segment }) => segments.some(({ parent, source }) => parent === segment && source === 'policy'))
    .length;
}

describe('uncertainty', () => {
  it('is the entropy of the known tokens and of the rest as one, or the surprise where none are known', () => {
    const top = (...probabilities: number[]) => ({
      tokens: Int32Array.from(probabilities.keys()),
      logprobs: Float32Array.from(probabilities, Math.log),
    });
    const generation = { logprobs: Float32Array.of(-0.25, -2), topLogprobs: [top(0.5, 0.5), top(0.5, 0.25)] };
    const [certain, rest] = uncertainty(generation);
    expect(certain).toBeCloseTo(Math.LN2, 6);
    expect(rest).toBeCloseTo(0.5 * Math.LN2 + 2 * 0.25 * Math.log(4), 6);
    expect([...uncertainty({ logprobs: generation.logprobs })]).toEqual([0.25, 2]);
  });
});
