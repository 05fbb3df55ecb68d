import { vi } from 'vitest';
import type { Executor } from '../../src/agents/contracts.ts';
import { singleTurn } from '../../src/agents/single-turn.ts';
import { DEFAULT_SAMPLING, type Learner } from '../../src/engines/contracts.ts';
import { perSample } from '../../src/rewards/contracts.ts';
import { immediate, lockstep } from '../../src/rollout/admission.ts';
import { type AsyncOptions, AsyncPipeline, type Overlap } from '../../src/rollout/async.ts';
import { continuing } from '../../src/rollout/continuing.ts';
import { TaskOrder } from '../../src/rollout/order.ts';
import type { RolloutBatch } from '../../src/rollout/pipeline.ts';
import { SyncPipeline } from '../../src/rollout/sync.ts';
import { toTask } from '../../src/rollout/tasks.ts';
import { byteRenderer } from '../../src/testing/byte-tokenizer.ts';
import { type ScriptedSamplerOptions, scriptedSampler } from '../../src/testing/scripted-sampler.ts';

export const tasks = Array.from({ length: 40 }, (_, i) =>
  toTask({ prompt: `question ${i}`, label: String(i) }, i, 'set'),
);
export const rewarded = singleTurn({ reward: perSample(({ label }) => Number(label)) });
export const version = (count: number) => ({ version: count }) as Learner;
/** Everything that can happen without a further answer has happened. */
export const settled = () => new Promise<void>(resolve => setImmediate(resolve));
export const numbers = (batch: RolloutBatch) => batch.groups.map(({ task }) => Number(task.label));

/** Takes the tasks as they stand in the file, so that tests can tell groups apart by their number. */
export function inFileOrder(): TaskOrder {
  const order = new TaskOrder(tasks, 7);
  let next = 0;
  vi.spyOn(order, 'nextTask').mockImplementation(() => {
    const task = tasks[next++ % tasks.length]!;
    return { task, group: `${task.id}@0` };
  });
  return order;
}

export interface Setup extends Partial<Omit<AsyncOptions, keyof Overlap>>, Overlap {
  readonly executor?: Executor;
  readonly answers?: ScriptedSamplerOptions['answers'];
  readonly gated?: boolean;
  readonly inLockstep?: boolean;
  readonly signal?: AbortSignal;
}

/** An async pipeline of two groups a batch over a scripted sampler, and a sync one of the same parts. */
export function setup(options: Setup = {}) {
  const { executor = rewarded, answers = () => 'answer', gated = true, inLockstep, ...more } = options;
  const { signal = new AbortController().signal, ...pipelineOptions } = more;
  const renderer = byteRenderer();
  const sampler = scriptedSampler({ answers, gated });
  const served = options.partial === 'recompute' ? { ...sampler, generate: continuing(sampler).generate } : sampler;
  const said: string[] = [];
  const context = {
    executor,
    admission: inLockstep ? lockstep(served) : immediate(served),
    contextLength: sampler.contextLength,
    renderer,
    params: { ...DEFAULT_SAMPLING, maxTokens: 16, stopTokens: renderer.stopTokens },
    limits: { maxTurns: 4, maxNewTokens: 16, maxTokens: 512, callTimeoutMs: 10_000 },
    seed: 7,
    signal,
    log: (message: string) => said.push(message),
  };
  const order = pipelineOptions.order ?? inFileOrder();
  const shape = { groups: 2, samples: 1, minimumGroup: 1, maxFailureRate: 0.5 };
  const parts = { sampler, context, ...shape, ...pipelineOptions, order };
  return { sampler, said, pipeline: new AsyncPipeline(parts), sync: () => new SyncPipeline(parts) };
}
