import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Executor } from '../agents/contracts.ts';
import { singleTurn } from '../agents/single-turn.ts';
import { DEFAULT_SAMPLING } from '../engines/contracts.ts';
import { episodeReward } from '../episode/episode.ts';
import { perSample } from '../rewards/contracts.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { scriptedSampler } from '../testing/scripted-sampler.ts';
import { immediate } from './admission.ts';
import { readBacklog, writeBacklog } from './groups-file.ts';
import { TaskOrder } from './order.ts';
import type { RolloutBatch } from './pipeline.ts';
import { type GroupSelection, nextRound } from './selection.ts';
import { type SyncOptions, SyncPipeline } from './sync.ts';
import { toTask } from './tasks.ts';

/** Twelve tasks; the label is the reward of every sample. */
const tasks = Array.from({ length: 12 }, (_, i) => toTask({ prompt: `question ${i}`, label: String(i % 4) }, i, 'set'));
const rewarded: Executor = singleTurn({ reward: perSample(({ label }) => Number(label)) });
const failing: Executor = {
  name: 'failing',
  run: async (task, context) => {
    if (task.label === '3') throw new Error('no');
    return rewarded.run(task, context);
  },
};
const solved: GroupSelection = { accepts: episodes => episodes[0]!.score === 3 };

function pipelineOf(options: Partial<SyncOptions> & { executor?: Executor } = {}) {
  const { executor = rewarded, ...more } = options;
  const said: string[] = [];
  const renderer = byteRenderer();
  const sampler = scriptedSampler({ answers: ({ params }) => (params.temperature === 0 ? 'greedy' : 'sampled') });
  const context = {
    executor,
    admission: immediate(sampler),
    contextLength: sampler.contextLength,
    renderer,
    params: { ...DEFAULT_SAMPLING, maxTokens: 16, stopTokens: renderer.stopTokens },
    limits: { maxTurns: 3, maxNewTokens: 16, maxTokens: 512, callTimeoutMs: 1000 },
    seed: 7,
    signal: new AbortController().signal,
    log: (message: string) => said.push(message),
  };
  const order = new TaskOrder(tasks, 7);
  const shape = { groups: 2, samples: 2, minimumGroup: 2, maxFailureRate: 0.9 };
  const pipeline = new SyncPipeline({ sampler, order, context, ...shape, ...more });
  return { pipeline, said };
}

async function batches(pipeline: SyncPipeline, count: number): Promise<RolloutBatch[]> {
  const all: RolloutBatch[] = [];
  for await (const batch of pipeline) if (all.push(batch) === count) break;
  return all;
}

const names = (batch: RolloutBatch) => batch.groups.map(({ group }) => group);

describe('dynamic sampling', () => {
  it('replaces what is rejected, reports an honest pass rate and trains on what was accepted only', async () => {
    const { pipeline, said } = pipelineOf({ selection: solved });
    const [batch] = await batches(pipeline, 1);
    expect(batch!.groups.map(({ task }) => task.label)).toEqual(['3', '3']);
    const sampled = batch!.metrics['rollout/groups_sampled']!;
    expect(batch!.episodes).toHaveLength(2 * sampled);
    expect(batch!.metrics['rollout/dynamic_filtering_pass_rate']).toBe(2 / sampled);
    expect(batch!.metrics['rollout/reward_mean']).toBeLessThan(3);
    expect(pipeline.cursor.position + 12 * pipeline.cursor.epoch).toBe(sampled);
    expect(said).toEqual([]);
  });

  it('stops at the cap, says so, and goes on with what it has', async () => {
    const { pipeline, said } = pipelineOf({ selection: { accepts: () => false, maxOversampling: 3 } });
    const [first, second] = await batches(pipeline, 2);
    expect([first!.groups, second!.groups]).toEqual([[], []]);
    expect(first!.metrics).toMatchObject({
      'rollout/groups_sampled': 6,
      'rollout/dynamic_filtering_pass_rate': 0,
      'rollout/groups_dropped': 0,
    });
    expect(said[0]).toMatch(
      /only 0 of 2 groups.*6 tasks were sampled.*rollout\.max_oversampling.*6 groups taught nothing and 0/,
    );
  });

  it('loses no accepted group: what is beyond the batch opens the next one, also from a checkpoint', async () => {
    const selection = { accepts: () => true, oversampling: 2.5 };
    const plain = await batches(pipelineOf().pipeline, 5);
    const { pipeline } = pipelineOf({ selection });
    const all = await batches(pipeline, 5);
    expect(all.flatMap(names)).toEqual(plain.flatMap(names));
    expect(all.map(({ metrics }) => metrics['rollout/groups_waiting'])).toEqual([3, 1, 2, 0, 3]);
    expect(all.map(({ metrics }) => metrics['rollout/groups_sampled'])).toEqual([5, 0, 3, 0, 5]);
    expect('rollout/dynamic_filtering_pass_rate' in all[1]!.metrics).toBe(false);

    const { pipeline: before } = pipelineOf({ selection });
    await batches(before, 2);
    const directory = mkdtempSync(join(tmpdir(), 'waiting-'));
    await writeBacklog(join(directory, 'backlog.jsonl'), before.backlog);
    const { pipeline: after } = pipelineOf({ selection });
    after.seek(before.cursor, await readBacklog(join(directory, 'backlog.jsonl')));
    rmSync(directory, { recursive: true });
    const resumed = await batches(after, 3);
    const lasting = ({ groups }: RolloutBatch) => groups;
    expect(resumed.map(lasting)).toEqual(all.slice(2).map(lasting));
  });

  it('replaces groups in which too much failed, too', async () => {
    const { pipeline } = pipelineOf({ executor: failing, selection: { accepts: () => true }, maxFailureRate: 1 });
    const all = await batches(pipeline, 4);
    for (const { groups } of all) expect(groups).toHaveLength(2);
    expect(all.reduce((sum, { metrics }) => sum + metrics['rollout/groups_dropped']!, 0)).toBeGreaterThan(0);
  });

  it('rejects factors out of order', () => {
    expect(() => pipelineOf({ selection: { ...solved, oversampling: 9 } })).toThrow(
      /1 ≤ rollout\.oversampling ≤ .*got 9 and 8/,
    );
    expect(() => pipelineOf({ selection: { ...solved, oversampling: 0.5 } })).toThrow(/got 0\.5 and 8/);
  });

  it('names the line of a file that holds no groups', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'waiting-'));
    const path = join(directory, 'backlog.jsonl');
    const backlog = { waiting: [], started: [{ group: 'a@0', task: 'a' }], published: [0, 3] };
    await writeBacklog(path, backlog);
    expect(await readBacklog(path)).toEqual(backlog);
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"episodes":["{}"]}\n`);
    await expect(readBacklog(path)).rejects.toThrow(/backlog\.jsonl:2: not a group of episodes: .*not an episode/);
    writeFileSync(path, '{}\n');
    await expect(readBacklog(path)).rejects.toThrow(/backlog\.jsonl:1: not the head of a backlog/);
    rmSync(directory, { recursive: true });
  });
});

describe('nextRound', () => {
  it('asks once without a selection, and within the cap with one', () => {
    expect(nextRound(undefined, { groups: 4, accepted: 0, sampled: 0 })).toBe(4);
    expect(nextRound(undefined, { groups: 4, accepted: 1, sampled: 4 })).toBe(0);
    const selection = { ...solved, oversampling: 1.5, maxOversampling: 2 };
    expect(nextRound(selection, { groups: 4, accepted: 0, sampled: 0 })).toBe(6);
    expect(nextRound(selection, { groups: 4, accepted: 2, sampled: 6 })).toBe(2);
    expect(nextRound(selection, { groups: 4, accepted: 2, sampled: 8 })).toBe(0);
    expect(nextRound(selection, { groups: 4, accepted: 4, sampled: 6 })).toBe(0);
  });
});

describe('greedy attempts', () => {
  it('are made beside the samples of each task and take no part in their metrics', async () => {
    const length = singleTurn({ reward: perSample(({ text }) => text.length) });
    const { pipeline } = pipelineOf({ executor: length, greedy: true });
    const [batch] = await batches(pipeline, 1);
    for (const { group, episodes, greedy } of batch!.groups) {
      expect(episodes.map(episodeReward)).toEqual([7, 7]);
      expect(greedy!.id).toBe(`${group}/greedy`);
      expect(episodeReward(greedy!)).toBe(6);
    }
    expect(batch!.episodes).toHaveLength(6);
    expect(batch!.metrics).toMatchObject({
      'rollout/num_samples': 4,
      'rollout/reward_mean': 7,
      'rollout/greedy_reward_mean': 6,
    });
  });

  it('that fail take their group with them', async () => {
    const executor: Executor = {
      name: 'greedy fails',
      run: (task, context) =>
        context.id.endsWith('greedy') ? Promise.reject(new Error('no')) : rewarded.run(task, context),
    };
    const { pipeline } = pipelineOf({ executor, greedy: true });
    const [batch] = await batches(pipeline, 1);
    expect(batch!.groups).toEqual([]);
    expect(batch!.metrics).toMatchObject({ 'rollout/groups_dropped': 2, 'rollout/failed': 2 });
    expect('rollout/greedy_reward_mean' in batch!.metrics).toBe(false);
  });
});

it('an episode whose reward is not a finite number has failed, and says so', async () => {
  for (const [reward, score, message] of [
    [Number.NaN, 0, 'the reward is NaN; it must be a finite number'],
    [0, Number.POSITIVE_INFINITY, 'the score is Infinity; it must be a finite number'],
  ] as const) {
    const executor: Executor = {
      name: 'careless',
      run: async (task, context) => {
        const episode = await rewarded.run(task, context);
        const steps = episode.steps.map(step => ({ ...step, reward }));
        return context.sample === 0 ? { ...episode, steps, score } : episode;
      },
    };
    const [batch] = await batches(pipelineOf({ executor, samples: 3 }).pipeline, 1);
    expect(batch!.groups.map(({ episodes }) => episodes.length)).toEqual([2, 2]);
    expect(batch!.metrics['rollout/failed_reward']).toBe(2);
    expect(batch!.episodes[0]!.outcome).toEqual({ kind: 'failed', failure: 'reward', message, step: 0 });
  }
});
