import { describe, expect, it } from 'vitest';
import type { Executor, ExecutorContext } from '../agents/contracts.ts';
import { multiTurn } from '../agents/multi-turn.ts';
import { DEFAULT_SAMPLING } from '../engines/contracts.ts';
import { type Episode, EpisodeRecorder } from '../episode/episode.ts';
import { EpisodeError } from '../episode/failure.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { scriptedSampler } from '../testing/scripted-sampler.ts';
import { immediate } from './admission.ts';
import { runGroups } from './groups.ts';
import { TaskOrder } from './order.ts';
import type { RolloutBatch } from './pipeline.ts';
import { SyncPipeline } from './sync.ts';
import { toTask } from './tasks.ts';

const tasks = Array.from({ length: 6 }, (_, i) => toTask({ prompt: `question ${i}`, label: String(i) }, i, 'set'));
const renderer = byteRenderer();

function parts(executor: Executor, signal = new AbortController().signal) {
  const sampler = scriptedSampler({ answers: () => 'answer' });
  const limits = { maxTurns: 3, maxNewTokens: 16, maxTokens: 512, callTimeoutMs: 1000 };
  const params = { ...DEFAULT_SAMPLING, maxTokens: 16, stopTokens: renderer.stopTokens };
  const context = {
    executor,
    admission: immediate(sampler),
    contextLength: sampler.contextLength,
    renderer,
    params,
    limits,
    seed: 7,
    signal,
    log: () => undefined,
  };
  return { sampler, context };
}

async function collect(executor: Executor, options: { maxFailureRate?: number; minimumGroup?: number } = {}) {
  const { sampler, context } = parts(executor);
  const { maxFailureRate = 0.5, minimumGroup = 2 } = options;
  const order = new TaskOrder(tasks, 7);
  const pipeline = new SyncPipeline({ sampler, order, context, groups: 2, samples: 3, minimumGroup, maxFailureRate });
  for await (const batch of pipeline) return { batch, sampler, pipeline };
  throw new Error('the pipeline ended');
}

/** Ends an episode at once, failing those for which `fails` is true. */
function instant(fails: (context: ExecutorContext) => boolean): Executor {
  return {
    name: 'instant',
    async run(task, context): Promise<Episode> {
      if (fails(context)) throw new EpisodeError('tool', 'the hammer broke');
      return new EpisodeRecorder({ ...context, task }).finish({ kind: 'done' });
    },
  };
}

const sizes = ({ groups }: RolloutBatch) => groups.map(({ episodes }) => episodes.length);

describe('SyncPipeline', () => {
  it('runs groups of episodes with one environment seed a group and a sampling seed a request', async () => {
    const seeds: number[] = [];
    const executor = multiTurn(() => ({
      reset: (task, { seed }) => {
        seeds.push(seed);
        return { observation: task.prompt };
      },
      step: ({ turn }) =>
        turn === 0
          ? { reward: 0, feedback: ' more', done: false }
          : { reward: 1, done: true, metrics: { used_tool: 1 } },
    }));
    const { batch, sampler, pipeline } = await collect(executor);
    expect(sizes(batch)).toEqual([3, 3]);
    expect(new Set(seeds).size).toBe(2);
    expect(new Set(sampler.requests.map(({ seed }) => seed)).size).toBe(12);
    expect(new Set(sampler.requests.map(({ key }) => key)).size).toBe(12);
    expect(batch.metrics).toMatchObject({
      'rollout/num_samples': 6,
      'rollout/reward_mean': 1,
      'rollout/reward_std': 0,
      'rollout/turns': 2,
      'rollout/used_tool': 1,
      'rollout/response_length_mean': 2 * ('answer'.length + 1),
      'rollout/failed': 0,
    });
    expect(pipeline.cursor).toEqual({ epoch: 0, position: 2 });
  });

  it('leaves failed episodes out, and groups that become too small', async () => {
    const { batch } = await collect(instant(({ sample }) => sample === 0));
    expect(sizes(batch)).toEqual([2, 2]);
    expect(batch.episodes).toHaveLength(6);
    expect(batch.episodes[0]!.outcome).toEqual({
      kind: 'failed',
      failure: 'tool',
      message: 'executor instant: the hammer broke',
      step: 0,
    });
    expect(batch.metrics).toMatchObject({ 'rollout/failed': 2, 'rollout/failed_tool': 2, 'rollout/num_samples': 4 });
    const small = await collect(
      instant(({ sample }) => sample === 0),
      { minimumGroup: 3 },
    );
    expect(small.batch.groups).toEqual([]);
    expect(small.batch.metrics['rollout/groups_dropped']).toBe(2);
  });

  it('stops above the failure rate and says why', async () => {
    await expect(collect(instant(({ sample }) => sample > 0))).rejects.toThrow(
      /4 of 6 episodes failed, more than rollout\.max_failure_rate 0\.5 allows:\n {2}4 x tool: executor instant: the hammer broke/,
    );
  });

  it('ends with the reason of an abort, and ends every episode', async () => {
    const abort = new AbortController();
    let closed = 0;
    const executor = multiTurn(() => ({
      reset: ({ prompt }) => ({ observation: prompt }),
      step: () => {
        abort.abort(new Error('enough'));
        return new Promise(() => undefined);
      },
      close: () => {
        closed += 1;
      },
    }));
    const { context } = parts(executor, abort.signal);
    const specs = tasks.map(task => ({ task, group: task.id, samples: 2, environmentSeed: 0 }));
    await expect(runGroups(specs, context)).rejects.toThrow('enough');
    expect(closed).toBe(12);
  });
});
