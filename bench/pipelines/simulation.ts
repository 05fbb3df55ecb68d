import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { multiTurn } from '../../src/agents/multi-turn.ts';
import { DEFAULT_SAMPLING, type Learner } from '../../src/engines/contracts.ts';
import { immediate } from '../../src/rollout/admission.ts';
import { AsyncPipeline, type Overlap } from '../../src/rollout/async.ts';
import { continuing } from '../../src/rollout/continuing.ts';
import { TaskOrder } from '../../src/rollout/order.ts';
import type { Pipeline } from '../../src/rollout/pipeline.ts';
import { seedOf } from '../../src/rollout/seeds.ts';
import { SyncPipeline } from '../../src/rollout/sync.ts';
import { toTask } from '../../src/rollout/tasks.ts';
import { byteRenderer } from '../../src/testing/byte-tokenizer.ts';
import { SimulatedSampler } from './simulated-sampler.ts';
import { VirtualClock } from './virtual-clock.ts';

/** What is simulated. Times are milliseconds of the virtual clock. */
export interface Workload {
  readonly groups: number;
  readonly samples: number;
  /** Answers of an episode. */
  readonly turns: number;
  /** Median tokens of an answer, and the standard deviation of their logarithm. */
  readonly tokens: number;
  readonly spread: number;
  /** Share of episodes whose answers are 20 times as long. */
  readonly stragglers: number;
  /** Median wait for a tool between two turns; its logarithm has the same spread. */
  readonly tool: number;
  /** Answers decoded together. */
  readonly rows: number;
  readonly perToken: number;
  readonly perPrefilled: number;
  readonly swap: number;
  /** Time of an update. */
  readonly train: number;
}

/** Of the part of a run in which it is in its stride. */
export interface Measured {
  /** Groups trained on in a second; a group that counts in part is one. */
  readonly throughput: number;
  /** Row-milliseconds of decoding for a group, whatever became of it. */
  readonly workPerGroup: number;
  readonly generatorIdle: number;
  readonly trainerIdle: number;
  readonly stalenessMean: number;
  readonly stalenessMax: number;
  readonly versionsPerSequence: number;
  readonly dropped: number;
  readonly lengthBias: number;
}

const STRAGGLER = 20;

/** Runs a pipeline on the workload for so many steps, of which the first do not count. */
export async function simulate(
  work: Workload,
  overlap: Overlap | undefined,
  { steps = 40, warmup = 10, seed = 1 } = {},
): Promise<Measured> {
  const clock = new VirtualClock();
  const lognormal = (median: number, ...what: (string | number)[]) => {
    const random = xoroshiro128plus(seedOf(seed, ...what));
    for (let i = 0; i < 16; i++) random.next();
    // Box and Muller's transform; 1 − u is never 0.
    const [u, v] = [uniformFloat64(random), uniformFloat64(random)];
    return median * Math.exp(work.spread * Math.sqrt(-2 * Math.log(1 - u)) * Math.cos(2 * Math.PI * v));
  };
  const slow = (episode: string) => seedOf(seed, 'straggler', episode) < work.stragglers * 2 ** 32;
  const length = (key: string) => {
    const factor = slow(key.split('#')[0]!) ? STRAGGLER : 1;
    return Math.max(1, Math.round(factor * lognormal(work.tokens, 'length', key)));
  };
  const { rows, perToken, perPrefilled, swap } = work;
  const sampler = new SimulatedSampler({ clock, rows, perToken, perPrefilled, swap, length });
  const executor = multiTurn(() => ({
    reset: () => ({ observation: 'x' }),
    step: async ({ turn, task }) => {
      if (turn + 1 < work.turns) await clock.sleep(lognormal(work.tool, 'tool', task.id, turn, clock.now));
      return { reward: 1, feedback: 'x', done: turn + 1 === work.turns };
    },
  }));
  const renderer = byteRenderer();
  const contextLength = sampler.contextLength;
  const tasks = Array.from({ length: 4096 }, (_, i) => toTask({ prompt: 'x', id: String(i) }, i, 'set'));
  const context = {
    executor,
    admission: immediate(overlap?.partial === 'recompute' ? continuing(sampler) : sampler),
    contextLength,
    renderer,
    params: { ...DEFAULT_SAMPLING, maxTokens: contextLength, stopTokens: [] },
    limits: { maxTurns: work.turns, maxNewTokens: contextLength, maxTokens: contextLength, callTimeoutMs: 2 ** 30 },
    seed,
    signal: new AbortController().signal,
    log: () => undefined,
  };
  const { groups, samples } = work;
  const order = new TaskOrder(tasks, seed);
  const parts = { sampler, order, context, groups, samples, minimumGroup: 1, maxFailureRate: 0 };
  const pipeline: Pipeline = overlap
    ? new AsyncPipeline({ ...parts, ...overlap, now: () => clock.now })
    : new SyncPipeline(parts);
  return clock.run(learn(pipeline));

  async function learn(of: Pipeline): Promise<Measured> {
    let step = 0;
    let [began, decoded, sampled, trained, trainTime] = [0, 0, 0, 0, 0];
    const totals: Record<string, number> = {};
    for await (const { groups: batch, episodes, metrics } of of) {
      if (step > warmup) {
        trained += batch.length;
        sampled += episodes.length / samples;
        trainTime += work.train;
        for (const [name, value] of Object.entries(metrics)) totals[name] = (totals[name] ?? 0) + value;
        totals.max = Math.max(totals.max ?? 0, metrics['rollout/staleness_max'] ?? 0);
      }
      await clock.sleep(work.train);
      step += 1;
      await of.publish({ version: step } as Learner);
      if (step === warmup + 1) [began, decoded] = [clock.now, sampler.busy];
      if (step === steps + warmup + 1) break;
    }
    const time = clock.now - began;
    const busy = sampler.busy - decoded;
    const per = (name: string) => (totals[name] ?? 0) / steps;
    return {
      throughput: (1000 * trained) / time,
      workPerGroup: busy / sampled,
      generatorIdle: 1 - busy / (time * rows),
      trainerIdle: 1 - trainTime / time,
      stalenessMean: per('rollout/staleness_mean'),
      stalenessMax: totals.max ?? 0,
      versionsPerSequence: overlap ? per('rollout/versions_per_sequence') : 1,
      dropped: totals['rollout/stale_dropped'] ?? 0,
      lengthBias: overlap ? per('rollout/length_bias') : 1,
    };
  }
}
