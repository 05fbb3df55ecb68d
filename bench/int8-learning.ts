import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SamplingDType } from '../src/engines/onnx/dtype.ts';
import { onnxPolicy } from '../src/engines/onnx/index.ts';
import { Model } from '../src/engines/onnx/model.ts';
import { makeEnvironment } from '../src/envs/index.ts';
import {
  grpo,
  multiTurn,
  type RewardInput,
  readJsonl,
  type TaskInput,
  type TrainOptions,
  train,
} from '../src/index.ts';
import { writeCheckpoint } from '../src/nn/checkpoint/directory.ts';
import { mean } from '../src/rollout/metrics.ts';
import { writeCharTokenizer } from '../src/text/char-tokenizer.ts';
import { type Cell, type Table, THREADS } from './harness.ts';
import { MODELS, withConfig } from './models.ts';
import { randomIds } from './workload.ts';

/**
 * The same runs with the policy sampled in float32 and in int8 (with the correction that a run in int8 has by itself):
 * reward by step and by time.
 */

const SEEDS = [1, 2, 3];
const DTYPES = ['float32', 'int8'] as const;
const CORRECTION = { type: 'tis', low: 0.5, high: 5 } as const;

interface Job {
  readonly title: string;
  readonly steps: number;
  readonly options: (directory: string) => Omit<TrainOptions, 'policy' | 'algorithm' | 'steps' | 'seed'>;
  /** Calls `use` with a directory of the policy. */
  readonly model: <T>(use: (directory: string) => Promise<T>) => Promise<T>;
}

const example = (path: string) => fileURLToPath(new URL(`../examples/calculator-agent/${path}`, import.meta.url));

/** The recipe of examples/calculator-agent, 0.4M. */
const calculator: Job = {
  title: 'calculator agent, 0.4M',
  steps: 150,
  options: () => ({
    tasks: readJsonl<TaskInput>(example('train.jsonl'), row => row as never),
    agent: multiTurn(makeEnvironment('calculator'), { maxTurns: 3, maxNewTokens: 16 }),
    groupsPerStep: 32,
    groupSize: 8,
    optimizer: { learningRate: 4e-4, schedule: 'cosine_with_min_lr' },
  }),
  model: use => use(example('model')),
};

const LETTERS = Array.from({ length: 4094 }, (_, i) => String.fromCodePoint(0x4e00 + i));
const EVEN_TASKS = 64;

/** Share of even ids in the answer: something that random weights can learn. */
function evenShare({ episode }: RewardInput): number {
  const tokens = episode.segments.flatMap(({ source, tokens }) => (source === 'policy' ? [...tokens] : []));
  return tokens.filter(token => token % 2 === 0).length / tokens.length;
}

/** 25M from random weights: long answers in even ids. */
const even: Job = {
  title: 'share of even ids in 32 tokens, 25M',
  steps: 16,
  options: () => ({
    tasks: Array.from({ length: EVEN_TASKS }, (_, task) => ({
      prompt: [...randomIds(4, LETTERS.length, task)].map(id => LETTERS[id]).join(''),
    })),
    reward: evenShare,
    groupsPerStep: 8,
    groupSize: 16,
    limits: { maxNewTokens: 32 },
    sampling: { stopTokens: [] },
    optimizer: { learningRate: 3e-3 },
  }),
  model: use =>
    withConfig(MODELS['25M']!, async config => {
      const directory = mkdtempSync(join(tmpdir(), 'tokenloop-int8-'));
      try {
        const { rawConfig, layout, weights } = new Model(config, 1);
        await writeCheckpoint(directory, { rawConfig, layout, weights, carry: config });
        await writeCharTokenizer(directory, {
          special: ['<|pad|>', '<|end|>'],
          alphabet: LETTERS.join(''),
          pad: '<|pad|>',
          eos: '<|end|>',
        });
        return await use(directory);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    }),
};

interface Curve {
  readonly rewards: readonly number[];
  readonly generation: number;
  readonly seconds: number;
  readonly mismatch: number;
}

/** @param limit steps instead of each job's own */
export async function compareLearning(limit?: number): Promise<Table[]> {
  const tables: Table[] = [];
  for (const job of [calculator, even]) {
    const rows: Cell[][] = [];
    await job.model(async directory => {
      for (const seed of SEEDS) {
        for (const dtype of DTYPES)
          rows.push([dtype, seed, ...summary(await learn(job, directory, dtype, seed, limit))]);
      }
    });
    tables.push({
      title: `${job.title}: reward by step and time, ${limit ?? job.steps} steps, ${THREADS} threads`,
      columns: [
        'sampled in',
        'seed',
        'first',
        'by a third',
        'by two thirds',
        'last',
        'sampling, s',
        'all, s',
        'largest |δ|',
      ],
      rows,
    });
  }
  return tables;
}

async function learn(job: Job, directory: string, dtype: SamplingDType, seed: number, limit?: number): Promise<Curve> {
  const run = train({
    ...job.options(directory),
    policy: () =>
      onnxPolicy({ model: directory, threads: THREADS, samplingDtype: dtype, adam: { betas: [0.9, 0.99] } }),
    algorithm: grpo(dtype === 'int8' ? { correction: CORRECTION } : {}),
    seed,
    steps: limit ?? job.steps,
  });
  const rewards: number[] = [];
  let [generation, seconds, mismatch] = [0, 0, 0];
  for await (const { metrics } of run) {
    rewards.push(metrics['rollout/reward_mean']!);
    generation += metrics['timing/generation']!;
    seconds += metrics['timing/step_total']!;
    mismatch = Math.max(mismatch, metrics['train/mismatch_max']!);
  }
  return { rewards, generation, seconds, mismatch };
}

/** Mean rewards over a tenth of the run, at its beginning, after a third and two thirds, and at its end; times. */
function summary({ rewards, generation, seconds, mismatch }: Curve): Cell[] {
  const width = Math.max(1, Math.floor(rewards.length / 10));
  const around = (share: number) => {
    const start = Math.round(share * (rewards.length - width));
    return mean(rewards.slice(start, start + width));
  };
  return [around(0), around(1 / 3), around(2 / 3), around(1), generation, seconds, mismatch];
}
