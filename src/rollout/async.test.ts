import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { numbers, type Setup, settled, setup, version } from '../../tests/support/async-pipeline.ts';
import { multiTurn } from '../agents/multi-turn.ts';
import type { EnvironmentFactory } from '../envs/contracts.ts';
import type { Pipeline, RolloutBatch } from './pipeline.ts';

describe('AsyncPipeline', () => {
  it('begins groups while a batch is trained on, as many as the queue has places, and no more', async () => {
    const { sampler, pipeline } = setup({ queueSize: 2, maxStaleness: 2 });
    const batches = pipeline[Symbol.asyncIterator]();
    const first = batches.next();
    await settled();
    expect(sampler.inFlight).toEqual([0, 1, 2, 3]);
    sampler.finish(0);
    sampler.finish(1);
    expect(numbers((await first).value)).toEqual([0, 1]);
    // Nobody asks for a batch now.
    await settled();
    expect(sampler.inFlight).toEqual([2, 3, 4, 5]);
    for (const index of [2, 3, 4, 5]) sampler.finish(index);
    await settled();
    expect(sampler.inFlight).toEqual([]);
    expect(pipeline.backlog.waiting.map(({ task }) => task.label)).toEqual(['2', '3', '4', '5']);
    await pipeline.publish(version(1));
    const { value } = await batches.next();
    expect(numbers(value)).toEqual([2, 3]);
    expect(value.metrics).toMatchObject({ 'rollout/queue_depth': 2, 'rollout/groups_in_flight': 0 });
    await settled();
    expect(sampler.inFlight).toEqual([6, 7]);
    await batches.return(undefined);
  });

  it('begins nothing that could become too stale', async () => {
    const { sampler, pipeline } = setup({ queueSize: 2, maxStaleness: 1 });
    const batches = pipeline[Symbol.asyncIterator]();
    const first = batches.next();
    await settled();
    expect(sampler.inFlight).toHaveLength(4);
    for (const index of [0, 1, 2, 3]) sampler.finish(index);
    await first;
    await settled();
    expect(sampler.inFlight).toEqual([]);
    await pipeline.publish(version(1));
    await settled();
    expect(sampler.inFlight).toEqual([4, 5]);
    await batches.return(undefined);
  });

  it('closes a batch with the groups that are complete; stragglers go on into a later one', async () => {
    const { sampler, pipeline } = setup({ generateGroups: 3, partial: 'keep' });
    const batches = pipeline[Symbol.asyncIterator]();
    const first = batches.next();
    await settled();
    sampler.advance(0, 2);
    sampler.finish(1);
    sampler.finish(2);
    const { value: one } = await first;
    expect(numbers(one)).toEqual([1, 2]);
    expect(one.metrics['rollout/groups_overtaken']).toBe(1);
    await pipeline.publish(version(1));
    const second = batches.next();
    await settled();
    for (const index of sampler.inFlight) sampler.finish(index);
    const { value: two } = await second;
    expect(numbers(two)).toEqual([0, 3]);
    // Two tokens of the first weights, the rest of the next.
    expect([...two.groups[0]!.episodes[0]!.segments[1]!.versions]).toEqual([0, 0, 1, 1, 1, 1, 1]);
    expect(two.metrics).toMatchObject({
      'rollout/staleness_max': 1,
      'rollout/staleness_mean': 2 / 14,
      'rollout/versions_per_sequence': 1.5,
      'rollout/partial_rate': 0.5,
    });
    await batches.return(undefined);
  });

  it('feeds the beginning of an answer again where its cache is to be computed anew', async () => {
    const { sampler, pipeline } = setup({
      partial: 'recompute',
      answers: request => (request.tokens.at(-1) === 65 ? 'B' : 'AAA'),
    });
    const batches = pipeline[Symbol.asyncIterator]();
    const first = batches.next();
    await settled();
    for (const index of sampler.inFlight) sampler.finish(index);
    await first;
    await settled();
    sampler.advance(2, 2);
    await pipeline.publish(version(5));
    const [request, continued] = [sampler.requests[2]!, sampler.requests.at(-2)!];
    expect([...continued.tokens]).toEqual([...request.tokens, 65, 65]);
    expect(continued.params.maxTokens).toBe(request.params.maxTokens - 2);
    expect(continued.seed).not.toBe(request.seed);
    for (const index of sampler.inFlight) sampler.finish(index);
    const { value } = await batches.next();
    const answer = value.groups[0]!.episodes[0]!.segments[1]!;
    expect([...answer.versions]).toEqual([0, 0, 5, 5]);
    expect(String.fromCharCode(...answer.tokens.slice(0, 3))).toBe('AAB');
    await batches.return(undefined);
  });

  it('lets every group end before weights change, unless it is partial', async () => {
    const { sampler, pipeline } = setup();
    const batches = pipeline[Symbol.asyncIterator]();
    const first = batches.next();
    await settled();
    sampler.finish(0);
    sampler.finish(1);
    await first;
    await settled();
    let published = false;
    const publishing = pipeline.publish(version(1)).then(() => {
      published = true;
    });
    sampler.finish(2);
    await settled();
    expect([published, sampler.inFlight, sampler.version]).toEqual([false, [3], 0]);
    sampler.finish(3);
    await publishing;
    expect(sampler.version).toBe(1);
    await batches.return(undefined);
  });

  it.each([
    ['drop', [5, 6], { 'rollout/stale_dropped': 1, 'rollout/stale_weighted': 0 }],
    ['weigh', [0, 5], { 'rollout/stale_dropped': 0, 'rollout/stale_weighted': 1 }],
  ] as const)('%ss what has become too stale, and counts it', async (whenStale, expected, metrics) => {
    const { sampler, pipeline } = setup({ generateGroups: 3, maxStaleness: 1, whenStale, partial: 'keep' });
    const batches = pipeline[Symbol.asyncIterator]();
    const given: RolloutBatch[] = [];
    for (let step = 0; step < 2; step++) {
      const next = batches.next();
      await settled();
      sampler.advance(0, 1);
      for (const index of sampler.inFlight) if (index > 0) sampler.finish(index);
      given.push((await next).value);
      await pipeline.publish(version(step + 1));
    }
    expect(given.map(numbers)).toEqual(
      [
        [1, 2],
        [3, 4],
      ]
        .slice(0, 1)
        .concat([[3, 4]]),
    );
    sampler.finish(0);
    const next = batches.next();
    for (let i = 0; i < 3; i++) {
      await settled();
      for (const index of sampler.inFlight) sampler.finish(index);
    }
    const { value } = await next;
    expect(numbers(value)).toEqual(expected);
    expect(value.metrics).toMatchObject(metrics);
    const [first] = value.groups;
    if (whenStale === 'weigh') expect(first!.weight).toBe(2 / 3);
    // A group that is left out is reported all the same.
    expect(value.episodes.map(({ task }: { task: { label: string } }) => task.label)).toContain('0');
    await batches.return(undefined);
  });

  it('gives what the sync pipeline gives when no staleness is allowed, whatever the environments do', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.infiniteStream(fc.nat(9)), async (scheduler, failures) => {
        const fails = new Map<string, boolean>();
        const environment =
          (name: string): EnvironmentFactory =>
          () => ({
            reset: ({ prompt }) => ({ observation: prompt }),
            step: async ({ turn, task, actionText }) => {
              if (name === 'async') await scheduler.schedule(Promise.resolve());
              const key = `${task.id} ${turn}`;
              if (!fails.has(key)) fails.set(key, failures.next().value === 0);
              if (fails.get(key)) throw new Error('no');
              return { reward: actionText.length, feedback: ' more', done: turn === Number(task.label) % 3 };
            },
          });
        const run = async (pipeline: Pipeline) => {
          const given: unknown[] = [];
          for await (const { groups, episodes } of pipeline) {
            given.push({ groups, episodes, cursor: pipeline.cursor, backlog: pipeline.backlog.started });
            if (given.length === 4) break;
            await pipeline.publish(version(given.length));
          }
          return given;
        };
        const answers: Setup['answers'] = request => 'x'.repeat(request.seed % 5);
        const options = (name: string): Setup => ({
          executor: multiTurn(environment(name)),
          answers,
          gated: false,
          inLockstep: true,
          samples: 3,
          maxFailureRate: 1,
        });
        const expected = await run(setup(options('sync')).sync());
        for (const partial of [undefined, 'keep', 'recompute'] as const) {
          const running = run(setup({ ...options('async'), maxStaleness: 0, partial }).pipeline);
          let over = false;
          void running.finally(() => {
            over = true;
          });
          while (!over) {
            if (scheduler.count() > 0) await scheduler.waitOne();
            await settled();
          }
          expect(await running).toEqual(expected);
        }
      }),
      { numRuns: 15 },
    );
  });
});
