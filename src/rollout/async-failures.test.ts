import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { numbers, rewarded, settled, setup, tasks, version } from '../../tests/support/async-pipeline.ts';
import type { Executor } from '../agents/contracts.ts';
import { singleTurn } from '../agents/single-turn.ts';
import type { Episode } from '../episode/episode.ts';
import { perSample } from '../rewards/contracts.ts';
import type { AsyncPipeline } from './async.ts';
import { TaskOrder } from './order.ts';
import type { RolloutBatch } from './pipeline.ts';

describe('what goes wrong', () => {
  const failing: Executor = {
    name: 'failing',
    run: async (task, context) => {
      if (Number(task.label) % 2 === 0) throw new Error('even');
      return rewarded.run(task, context);
    },
  };

  it('leaves failed groups out, and stops above the failure rate', async () => {
    const { pipeline } = setup({ executor: failing, gated: false });
    const batches = pipeline[Symbol.asyncIterator]();
    const { value } = await batches.next();
    expect(numbers(value)).toEqual([1]);
    expect(value.metrics).toMatchObject({ 'rollout/groups_dropped': 1, 'rollout/failed': 1 });
    await batches.return(undefined);
    const strict = setup({ executor: failing, gated: false, maxFailureRate: 0.4 }).pipeline[Symbol.asyncIterator]();
    await expect(strict.next()).rejects.toThrow(/1 of 2 episodes failed, more than rollout\.max_failure_rate 0\.4/);
  });

  it('replaces refused groups at once, and gives what there is when too many were', async () => {
    const accepts = (labels: number[]) => ({
      accepts: (episodes: readonly { task: { label: string } }[]) => labels.includes(Number(episodes[0]!.task.label)),
      maxOversampling: 4,
    });
    const { pipeline, said } = setup({ gated: false, selection: accepts([3, 5, 7, 20]), maxStaleness: 0 });
    const batches = pipeline[Symbol.asyncIterator]();
    const { value: first } = await batches.next();
    expect(numbers(first)).toEqual([3, 5]);
    expect(first.metrics).toMatchObject({ 'rollout/groups_sampled': 6, 'rollout/dynamic_filtering_pass_rate': 2 / 6 });
    await pipeline.publish(version(1));
    const { value: second } = await batches.next();
    expect(numbers(second)).toEqual([7]);
    expect(second.metrics['rollout/groups_sampled']).toBe(8);
    expect(said[0]).toMatch(/only 1 of 2 groups for this step: 8 tasks were sampled/);
    await batches.return(undefined);
  });

  it('ends every episode with the reason of an abort', async () => {
    const abort = new AbortController();
    const { sampler, pipeline } = setup({ signal: abort.signal });
    const next = pipeline[Symbol.asyncIterator]().next();
    await settled();
    abort.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    expect(sampler.inFlight).toEqual([]);
  });
});

describe('a run that is killed and resumed', () => {
  it('neither loses nor repeats a group', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(4), { minLength: 30, maxLength: 60 }), async kills => {
        const trained: number[] = [];
        let state: Pick<AsyncPipeline, 'cursor' | 'backlog'> | undefined;
        let begun = 0;
        let step = 0;
        for (let life = 0; life < 6; life++) {
          const { sampler, pipeline } = setup({
            order: new TaskOrder(tasks, 7),
            generateGroups: 3,
            maxStaleness: 2,
            whenStale: 'weigh',
            partial: 'keep',
          });
          if (state) {
            pipeline.seek(state.cursor, JSON.parse(JSON.stringify(state.backlog, typed)));
            await pipeline.publish(version(step));
          }
          const batches = pipeline[Symbol.asyncIterator]();
          for (let given = 0; given < 2; given++) {
            const next = batches.next();
            let batch: RolloutBatch | undefined;
            void next.then(({ value }) => {
              batch = value;
            });
            while (batch === undefined) {
              await settled();
              const { inFlight } = sampler;
              if (inFlight.length > 0) sampler.finish(inFlight[kills[begun++ % kills.length]! % inFlight.length]!);
            }
            trained.push(...numbers(batch));
            await pipeline.publish(version(++step));
          }
          // The process ends here; what it began after the last look is lost.
          state = { cursor: pipeline.cursor, backlog: pipeline.backlog };
          const { backlog } = pipeline;
          await batches.return(undefined);
          expect(pipeline.backlog.started).toEqual(backlog.started);
        }
        expect(new Set(trained).size).toBe(24);
        const left = [
          ...state!.backlog.waiting.map(({ task }) => task.label),
          ...state!.backlog.started.map(s => s.task.slice(4)),
        ];
        expect(new Set([...trained, ...left.map(Number)]).size).toBe(state!.cursor.position);
      }),
      { numRuns: 20 },
    );
  });

  it('reports what failed or was refused before it, once', async () => {
    const fails = perSample(({ label }) => {
      if (label === '1') throw new Error('as planned');
      return Number(label);
    });
    const selection = { accepts: (episodes: readonly Episode[]) => episodes[0]!.score !== 0, maxOversampling: 8 };
    const executor = singleTurn({ reward: fails });
    // Five to a batch: the run ends before there is one.
    const shape = { executor, selection, groups: 5, maxFailureRate: 1 };
    const first = setup(shape);
    const batches = first.pipeline[Symbol.asyncIterator]();
    const never = batches.next();
    await settled();
    for (const index of [0, 1, 2]) first.sampler.finish(index);
    await settled();
    const { cursor, backlog } = first.pipeline;
    // Refused, failed and accepted, in the order in which they were begun.
    expect(backlog.waiting.map(({ task }) => task.label)).toEqual(['0', '1', '2']);

    const order = new TaskOrder(tasks, 7);
    const second = setup({ ...shape, order, gated: false });
    second.pipeline.seek(cursor, { ...backlog, started: [] });
    const resumed = second.pipeline[Symbol.asyncIterator]();
    const { value } = await resumed.next();
    expect(value.episodes.slice(0, 3).map(({ task }: Episode) => task.label)).toEqual(['0', '1', '2']);
    expect(value.metrics).toMatchObject({ 'rollout/groups_dropped': 1 });
    expect(numbers(value)).toContain(2);
    expect(numbers(value)).not.toContain(1);
    await resumed.return(undefined);
    for (const index of first.sampler.inFlight) first.sampler.finish(index);
    void never;
  });
});

/** Typed arrays as they are for JSON; the test looks at names only. */
function typed(_: string, value: unknown) {
  return ArrayBuffer.isView(value) ? Array.from(value as Int32Array) : value;
}
