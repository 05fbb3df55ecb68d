import { ESTIMATOR_NAMES, type EstimatorName, estimator } from '../src/algorithms/advantages/index.ts';
import { aggregate } from '../src/algorithms/aggregate.ts';
import { behaviourLogprobs } from '../src/algorithms/algorithm.ts';
import { CORRECTIONS, correct, DEFAULT_BOUNDS, mismatch } from '../src/algorithms/corrections.ts';
import { curate } from '../src/algorithms/curation.ts';
import { anyTurn, isTruncated, maskEpisodes, repeatsText, turnsAtLeast } from '../src/algorithms/filters.ts';
import { klPenalty } from '../src/algorithms/kl.ts';
import { overlongPenalty, splitReward, stopProperly } from '../src/algorithms/penalties.ts';
import { type Episode, EpisodeRecorder } from '../src/episode/episode.ts';
import { type Trajectory, toTrajectories } from '../src/episode/trajectory.ts';
import { type Case, interleave, Report } from './harness.ts';

/** A step of ten thousand episodes with a million tokens of the policy: more than one machine samples in an hour. */
const GROUPS = 1250;
const SAMPLES = 8;
const TURNS = 4;
const TOKENS = 25;

/**
 * The cost of estimators, corrections, filters and penalties; goal: under 100 ms each. Times are processor time of this
 * process, garbage collection included, which other processes do not lengthen: everything here runs on one thread.
 */
export async function run(names: string[]): Promise<void> {
  const report = new Report('algorithms');
  const groups = batch();
  const trajectories = groups.flatMap(({ episodes }) => episodes.flatMap(toTrajectories));
  const all = casesOf(groups, trajectories);
  const chosen = names.length > 0 ? all.filter(({ name }) => names.some(part => name.includes(part))) : all;
  const times = await interleave(chosen, { rounds: 3, seconds: 10 });
  const ms = (name: string) => 1000 * times.get(name)!;
  report.add({
    title: `${GROUPS * SAMPLES} episodes of ${TURNS} turns, ${GROUPS * SAMPLES * TURNS * TOKENS} tokens of the policy`,
    columns: ['what', 'ms of processor time', 'under 100 ms'],
    rows: chosen.map(({ name }) => [name, ms(name), ms(name) < 100 ? 'yes' : 'no']),
  });
  if (names.length === 0) report.save();
}

function casesOf(groups: readonly { readonly episodes: readonly Episode[] }[], trajectories: Trajectory[]): Case[] {
  const behaviour = trajectories.map(behaviourLogprobs);
  const noise = (scale: number) =>
    behaviour.map((row, i) => row.map((value, t) => value + scale * Math.sin(i + 7 * t)));
  const proximal = noise(0.05);
  const reference = noise(0.2);
  const values = noise(0.1);
  const penalties = proximal.map((row, i) => klPenalty('k1', row, reference[i]!));
  const greedyReturns = new Map(trajectories.map(({ group }) => [group, 0.4]));
  const keep = maskEpisodes(trajectories, new Set(trajectories.slice(0, 100).map(({ episode }) => episode)));
  const timed = (name: string, call: () => unknown): Case => ({
    name,
    run: () => {
      const before = process.cpuUsage();
      call();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1e6;
    },
  });
  const input = { trajectories, penalties, values, greedyReturns, keep };
  const estimate = (name: EstimatorName) => {
    const made = estimator(name, name === 'tree' ? { leaves: 'alternatives' } : {});
    return [
      timed(name, () => made.estimate({ trajectories, values, greedyReturns })),
      timed(`${name}, KL and mask`, () => made.estimate(input)),
    ];
  };
  const filters = [
    { name: 'truncated', finds: isTruncated, effect: 'mask' },
    { name: 'void_turns', finds: anyTurn(step => step.isVoid === true), effect: 'mask' },
    { name: 'failed_tools', finds: turnsAtLeast(0.5, step => step.toolFailed === true), effect: 'remove' },
  ] as const;
  const repeated = { name: 'repeated_text', finds: repeatsText({ n: 8, share: 0.5 }), effect: 'mask' } as const;
  const shaping = [
    { name: 'overlong', apply: overlongPenalty({ maxTokens: 120, buffer: 40 }) },
    { name: 'stop_properly', apply: stopProperly(0.5) },
    { name: 'split', apply: splitReward('geometric') },
  ];
  return [
    ...ESTIMATOR_NAMES.flatMap(estimate),
    ...(['token', 'sequence'] as const).map(mode =>
      timed(`aggregation ${mode}`, () => aggregate(trajectories, { mode }, keep)),
    ),
    ...CORRECTIONS.map(type => {
      const [low, high] = DEFAULT_BOUNDS[type];
      return timed(`correction ${type}`, () => correct({ type, low, high }, behaviour, proximal));
    }),
    timed('mismatch metrics', () => mismatch(behaviour, proximal)),
    timed('KL estimates', () => proximal.map((row, i) => klPenalty('k3', row, reference[i]!))),
    timed('filters of turns', () => curate(groups, { filters }, 2)),
    timed('filter of repeated text', () => curate(groups, { filters: [repeated] }, 2)),
    timed('penalties', () => curate(groups, { penalties: shaping }, 2)),
    timed('masks', () => maskEpisodes(trajectories, new Set(['g0/0']))),
  ];
}

/** Groups of chains with varied rewards, lengths and states. */
function batch(): { episodes: Episode[] }[] {
  return Array.from({ length: GROUPS }, (_, g) => ({
    episodes: Array.from({ length: SAMPLES }, (_, sample) => episode(g, sample)),
  }));
}

function episode(g: number, sample: number): Episode {
  const task = { id: `task ${g}`, prompt: 'p', label: '', metadata: {} };
  const record = new EpisodeRecorder({ id: `g${g}/${sample}`, task, group: `g${g}`, sample });
  let at = record.feed(-1, 'prompt', Int32Array.of(1, 2, 3));
  for (let turn = 0; turn < TURNS; turn++) {
    const tokens = Int32Array.from({ length: TOKENS }, (_, t) => (31 * g + 17 * sample + 7 * turn + t * t) % 997);
    const logprobs = Float32Array.from(tokens, token => -((token % 13) + 1) / 10);
    const segment = record.sampled(at, { tokens, logprobs, versions: new Int32Array(TOKENS) });
    const stateKey = `state ${(g + sample * turn) % 3} after ${turn} turns`;
    record.step({ segment, reward: turn === TURNS - 1 ? (g * sample) % 2 : 0, finishReason: 'stop', stateKey });
    at = record.feed(segment, 'environment', new Int32Array(10).fill(5));
  }
  return record.finish({ kind: 'done' });
}
