import { fileURLToPath } from 'node:url';
import type { Executor } from '../src/agents/contracts.ts';
import { multiTurn } from '../src/agents/multi-turn.ts';
import { type TreeSearchOptions, treeSearch } from '../src/agents/tree/tree-search.ts';
import { DEFAULT_SAMPLING } from '../src/engines/contracts.ts';
import { onnxPolicy } from '../src/engines/onnx/index.ts';
import type { EnvironmentFactory } from '../src/envs/contracts.ts';
import { makeEnvironment } from '../src/envs/registry.ts';
import { type Episode, leaves, type Segment } from '../src/episode/episode.ts';
import { readJsonl } from '../src/index.ts';
import { immediate } from '../src/rollout/admission.ts';
import { type RolloutContext, runGroups } from '../src/rollout/groups.ts';
import { mean } from '../src/rollout/metrics.ts';
import { seedOf } from '../src/rollout/seeds.ts';
import { type TaskInput, toTask } from '../src/rollout/tasks.ts';
import { type Cell, Report, THREADS } from './harness.ts';

/**
 * Trees beside chains at an equal number of sampled tokens. A task is solved if any leaf of its tree, or any of its
 * chains, solves it. Each task gets one tree, or a number of chains that does not depend on how they end; the shares of
 * tasks that k chains and k + 1 chains solve are interpolated at the tokens that the trees sampled on average.
 */

const SEEDS = [1, 2, 3, 4, 5];
const TASKS = 200;

interface Job {
  readonly title: string;
  readonly example: string;
  readonly environment: EnvironmentFactory;
  readonly maxNewTokens: number;
  /** best-first: answers in each state, and tokens after which nothing new is begun. */
  readonly branches: readonly number[];
  readonly budget: number;
  /** Chains a task that reach as many tokens as the trees. */
  readonly chains: number;
  /** Which of two states is better, and what that goes by. */
  readonly guide?: { readonly name: string; readonly rate: NonNullable<TreeSearchOptions['guide']> };
}

/** Three numbers from 1 to 8 in order: each right one earns a third, a wrong one ends the attempt. */
const lock: EnvironmentFactory = () => {
  let numbers: readonly string[] = [];
  return {
    reset(_, { seed }) {
      numbers = [0, 1, 2].map(place => String(1 + (seedOf(seed, place) % 8)));
      return { observation: [{ role: 'user', content: '1-8' }] };
    },
    step({ actionText, turn }) {
      const right = actionText === numbers[turn];
      return { reward: right ? 1 / 3 : 0, done: !right || turn === 2, feedback: [{ role: 'user', content: '?' }] };
    },
  };
};

const JOBS: readonly Job[] = [
  {
    title: 'guess-number, warm-started policy (0.4M)',
    example: 'guess-number',
    environment: makeEnvironment('guess-number'),
    maxNewTokens: 4,
    branches: [2],
    budget: 24,
    chains: 12,
    guide: { name: 'numbers left', rate: ({ text }) => -numbersLeft(text) },
  },
  {
    title: 'lock of three numbers, a reward for each, the same policy',
    example: 'guess-number',
    environment: lock,
    maxNewTokens: 4,
    branches: [8, 16],
    budget: 64,
    chains: 64,
  },
  {
    title: 'calculator, warm-started policy (0.4M)',
    example: 'calculator-agent',
    environment: makeEnvironment('calculator'),
    maxNewTokens: 16,
    branches: [2],
    budget: 48,
    chains: 12,
  },
];

/** Numbers that the answers so far leave possible. */
function numbersLeft(text: string): number {
  let [low, high] = [1, 8];
  for (const [, guess, told] of text.matchAll(/<\|assistant\|>(\d+)<\|end\|><\|user\|>([<>])/g)) {
    if (told === '<') high = Math.min(high, Number(guess) - 1);
    else low = Math.max(low, Number(guess) + 1);
  }
  return high - low + 1;
}

function trees({ environment, guide, branches, budget }: Job): Readonly<Record<string, Executor>> {
  const tree = (options: TreeSearchOptions) => treeSearch(environment, options);
  return {
    'turns, 2 branches, depth 1': tree({ strategy: 'turns', branches: 2, depth: 1 }),
    'turns, 2 branches, depth 2': tree({ strategy: 'turns', branches: 2, depth: 2 }),
    'turns, 4 branches, depth 1': tree({ strategy: 'turns', branches: 4, depth: 1 }),
    'entropy, 2 chains, 1 round of 2 points': tree({ strategy: 'entropy', branches: 2, rounds: 1, points: 2 }),
    'entropy, 2 chains, 2 rounds of 2 points': tree({ strategy: 'entropy', branches: 2, rounds: 2, points: 2 }),
    ...Object.fromEntries(
      branches.flatMap(each => [
        [`best-first by reward, ${each} branches`, tree({ strategy: 'best-first', branches: each, budget })],
        ...(guide
          ? [
              [
                `best-first by ${guide.name}, ${each} branches`,
                tree({ strategy: 'best-first', branches: each, budget, guide: guide.rate }),
              ],
            ]
          : []),
      ]),
    ),
  };
}

/** @param parts of the titles of the tasks to play; all of them when there are none */
export async function run(parts: string[]): Promise<void> {
  const report = new Report('search');
  const jobs = JOBS.filter(({ title }) => parts.length === 0 || parts.some(part => title.includes(part)));
  for (const job of jobs) {
    const policy = await onnxPolicy({ model: example(job.example, 'model'), threads: THREADS, training: false });
    try {
      const chains: Point[][] = [];
      for (const seed of SEEDS) chains.push(await play(job, multiTurn(job.environment), job.chains, seed, policy));
      const cells: Cell[][] = [];
      for (const [name, executor] of Object.entries(trees(job))) {
        const pairs: { readonly tree: Point; readonly solvedByChains: number }[] = [];
        for (const [i, seed] of SEEDS.entries()) {
          const [tree] = await play(job, executor, 1, seed, policy);
          pairs.push({ tree: tree!, solvedByChains: solvedAt(chains[i]!, tree!.tokens) });
        }
        const of = (value: (pair: (typeof pairs)[number]) => number) => mean(pairs.map(value));
        const gains = pairs.map(({ tree, solvedByChains }) => tree.solved - solvedByChains);
        const error = Math.sqrt(mean(gains.map(gain => (gain - mean(gains)) ** 2)) / (SEEDS.length - 1));
        cells.push([
          name,
          of(({ tree }) => tree.tokens),
          of(({ tree }) => tree.leaves),
          of(({ tree }) => tree.solved),
          of(({ solvedByChains }) => solvedByChains),
          `${(100 * mean(gains)).toFixed(1)} ± ${(100 * error).toFixed(1)}`,
          of(({ tree }) => (1000 * tree.solved) / tree.tokens),
          of(({ tree, solvedByChains }) => (1000 * solvedByChains) / tree.tokens),
        ]);
      }
      report.add({
        title: `${job.title}: ${TASKS} tasks, ${SEEDS.length} seeds, mean ± standard error`,
        columns: [
          'tree',
          'tokens a task',
          'leaves a task',
          'solved',
          'chains, as many tokens',
          'difference in points',
          'solved per 1000 tokens',
          'chains',
        ],
        rows: cells,
      });
    } finally {
      await policy.close();
    }
  }
  report.save();
}

/** What a number of attempts at each task came to: means over tasks. */
interface Point {
  readonly tokens: number;
  readonly leaves: number;
  readonly solved: number;
}

function solvedAt(chains: readonly Point[], tokens: number): number {
  const points = [{ tokens: 0, solved: 0 }, ...chains];
  const next = points.findIndex(point => point.tokens >= tokens);
  if (next < 0) throw new Error(`${tokens} tokens are more than ${chains.length} chains have`);
  const [below, above] = [points[next - 1]!, points[next]!];
  return below.solved + ((tokens - below.tokens) / (above.tokens - below.tokens)) * (above.solved - below.solved);
}

/** Where 1, 2 … `attempts` attempts at each task have come. */
async function play(
  { example: name, maxNewTokens }: Job,
  executor: Executor,
  attempts: number,
  seed: number,
  { sampler, renderer }: Awaited<ReturnType<typeof onnxPolicy>>,
): Promise<Point[]> {
  const inputs = readJsonl<TaskInput>(example(name, 'test.jsonl'), row => row as never);
  const tasks = Array.from({ length: TASKS }, (_, i) => toTask(asMessage(inputs.at(i % inputs.length)!), i, name));
  const context: RolloutContext = {
    executor,
    admission: immediate(sampler),
    contextLength: sampler.contextLength,
    renderer,
    params: { ...DEFAULT_SAMPLING, maxTokens: maxNewTokens, stopTokens: renderer.stopTokens },
    limits: { maxTurns: 3, maxNewTokens, maxTokens: sampler.contextLength, callTimeoutMs: 60_000 },
    seed,
    signal: new AbortController().signal,
    log: message => console.error(message),
  };
  const specs = tasks.map((task, i) => ({
    task,
    group: `${i}`,
    samples: attempts,
    environmentSeed: seedOf(seed, 'environment', i),
  }));
  const groups = await runGroups(specs, context);
  return Array.from({ length: attempts }, (_, k) => {
    const made = groups.map(({ episodes }) => episodes.slice(0, k + 1));
    const sum = (value: (episode: Episode) => number) =>
      mean(made.map(all => all.reduce((n, one) => n + value(one), 0)));
    return {
      tokens: sum(sampled),
      leaves: sum(({ segments }) => leaves(segments).length),
      solved: mean(made.map(all => (all.some(isSolved) ? 1 : 0))),
    };
  });
}

function sampled({ segments, outcome }: Episode): number {
  if (outcome.kind === 'failed') throw new Error(`an episode failed: ${outcome.message}`);
  return segments.reduce(
    (sum: number, { source, tokens }: Segment) => sum + (source === 'policy' ? tokens.length : 0),
    0,
  );
}

/** Everything there is to earn is 1. */
function isSolved({ metrics, score }: Episode): boolean {
  return (metrics.best_score ?? score) > 0.999;
}

function asMessage(input: TaskInput): TaskInput {
  return { ...input, prompt: [{ role: 'user', content: String(input.prompt) }] };
}

function example(name: string, path: string): string {
  return fileURLToPath(new URL(`../examples/${name}/${path}`, import.meta.url));
}
