import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Executor } from '../agents/contracts.ts';
import { multiTurn } from '../agents/multi-turn.ts';
import { singleTurn } from '../agents/single-turn.ts';
import { DEFAULT_SAMPLING, type Learner } from '../engines/contracts.ts';
import type { EnvironmentFactory } from '../envs/contracts.ts';
import type { Episode } from '../episode/episode.ts';
import { perSample } from '../rewards/contracts.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { type ScriptedSamplerOptions, scriptedSampler } from '../testing/scripted-sampler.ts';
import { immediate, lockstep } from './admission.ts';
import { type AsyncOptions, AsyncPipeline, type Overlap } from './async.ts';
import { continuing } from './continuing.ts';
import { TaskOrder } from './order.ts';
import type { Pipeline, RolloutBatch } from './pipeline.ts';
import { SyncPipeline } from './sync.ts';
import { toTask } from './tasks.ts';

const tasks = Array.from({ length: 40 }, (_, i) => toTask({ prompt: `question ${i}`, label: String(i) }, i, 'set'));
const rewarded = singleTurn({ reward: perSample(({ label }) => Number(label)) });
const version = (count: number) => ({ version: count }) as Learner;
/** Everything that can happen without a further answer has happened. */
const settled = () => new Promise<void>(resolve => setImmediate(resolve));
const numbers = (batch: RolloutBatch) => batch.groups.map(({ task }) => Number(task.label));

/** Takes the tasks as they stand in the file, so that tests can tell groups apart by their number. */
function inFileOrder(): TaskOrder {
  const order = new TaskOrder(tasks, 7);
  let next = 0;
  vi.spyOn(order, 'nextTask').mockImplementation(() => {
    const task = tasks[next++ % tasks.length]!;
    return { task, group: `${task.id}@0` };
  });
  return order;
}

interface Setup extends Partial<Omit<AsyncOptions, keyof Overlap>>, Overlap {
  readonly executor?: Executor;
  readonly answers?: ScriptedSamplerOptions['answers'];
  readonly gated?: boolean;
  readonly inLockstep?: boolean;
  readonly signal?: AbortSignal;
}

function setup(options: Setup = {}) {
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
