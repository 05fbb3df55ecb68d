import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chain } from '../../../tests/support/trajectories.ts';
import type { Trajectory } from '../../episode/trajectory.ts';
import { computeAdvantages } from '../algorithm.ts';
import { type AlgorithmValues, algorithmFromOptions, algorithmOptions } from '../options.ts';
import { rloo } from '../recipes.ts';
import { similarity } from '../similarity.ts';
import type { AdvantageInput, Estimator } from './contract.ts';
import { gae } from './gae.ts';
import { gigpo } from './gigpo.ts';
import { drGrpoAdvantage, groupNorm, leaveOneOut, optimalBaseline, reinforceBaseline } from './group.ts';
import { reinforce } from './reinforce.ts';
import { remax } from './remax.ts';

/** Against the functions of OpenRLHF, verl and the authors of GiGPO; see tools/golden/estimators.py. */

interface Turn {
  readonly tokens: number;
  readonly environment: number;
  readonly reward: number;
  readonly state: string;
}

interface Case {
  readonly kind: 'outcome' | 'single' | 'dense' | 'difference';
  readonly rows: readonly { readonly group: number; readonly turns: readonly Turn[] }[];
  readonly kl: readonly number[][];
  readonly values: readonly number[][];
  readonly beta: number;
  readonly gamma: number;
  readonly lambda: number;
  readonly greedy: readonly number[];
  readonly expected: Readonly<Record<string, number[][]>>;
}

type GigpoCase = Pick<Case, 'rows' | 'gamma'> & {
  readonly omega: number;
  readonly norm: 'mean' | 'mean_std';
  readonly similarity: number;
  readonly expected: number[][];
};

const golden = JSON.parse(
  readFileSync(new URL('../../../tests/goldens/algorithms/estimators.json', import.meta.url), 'utf8'),
) as {
  cases: Case[];
  gigpo: GigpoCase[];
  similarity: [string, string, number][];
  similarity_with_autojunk: number;
  /** Small cases, each for one thing that the others do otherwise. */
  differences: Readonly<Record<'turns' | 'clip' | 'equal' | 'near' | 'discount', Case>>;
  openrlhf_defaults: { 'algo.kl.init_coef': number; 'reward.clip_range': [number, number] };
};

/** What the peer takes: OpenRLHF's group estimators and both GAEs take the KL off, verl's group estimators do not see it. */
interface Peer {
  readonly make: (c: Case) => Estimator;
  readonly kl: boolean;
  readonly output?: 'returns';
}

const full = { mean: true, std: true };
const none = { mean: false, std: false };
const token = (c: Case) => ({ gamma: c.gamma, lambda: c.lambda, time: 'token' as const });

const peers: Record<string, Peer> = {
  'openrlhf gae': { make: c => gae(token(c)), kl: true },
  'openrlhf reinforce': { make: c => reinforce(token(c)), kl: true },
  'openrlhf reinforce_baseline': { make: () => reinforceBaseline({ whitening: full }), kl: true },
  'openrlhf reinforce_baseline, no std': {
    make: () => reinforceBaseline({ whitening: { mean: true, std: false } }),
    kl: true,
  },
  'openrlhf rloo': { make: () => leaveOneOut(), kl: true },
  'openrlhf group_norm': { make: () => groupNorm({ epsilon: 1e-9 }), kl: true },
  'openrlhf dr_grpo': { make: () => drGrpoAdvantage(), kl: true },
  'verl grpo': { make: () => groupNorm(), kl: false },
  'verl dr_grpo': { make: () => drGrpoAdvantage(), kl: false },
  'verl rloo': { make: () => leaveOneOut(), kl: false },
  'verl opo': { make: () => optimalBaseline(), kl: false },
  'verl remax': { make: () => remax(), kl: false },
  'verl gae returns': { make: c => gae({ ...token(c), whitening: none }), kl: true, output: 'returns' },
  'verl reinforce returns': { make: c => reinforce({ ...token(c), whitening: none }), kl: true },
};

function trajectories({ rows }: Pick<Case, 'rows'>): Trajectory[] {
  return rows.map(({ group, turns }, sample) =>
    chain({
      group: `${group}`,
      sample,
      turns: turns.map(({ state, ...turn }) => ({ ...turn, stateKey: state })),
    }),
  );
}

function run(c: Case, { make, kl, output }: Peer): number[][] {
  const input: AdvantageInput = {
    trajectories: trajectories(c),
    values: c.values.map(row => Float32Array.from(row)),
    greedyReturns: new Map(c.greedy.map((value, group) => [`${group}`, value])),
    ...(kl && { penalties: c.kl.map(row => Float32Array.from(row, value => c.beta * value)) }),
  };
  const result = make(c).estimate(input);
  return (output === 'returns' ? result.returns! : result.advantages).map(row => [...row]);
}

/** The peers compute in float32, and a whitened advantage divides by as little as 0.1. */
const TOLERANCE = 2e-5;

function expectClose(actual: readonly number[][], expected: readonly number[][]): void {
  expect(actual.map(row => row.length)).toEqual(expected.map(row => row.length));
  for (const [i, row] of expected.entries()) {
    for (const [t, value] of row.entries()) {
      expect(Math.abs(actual[i]![t]! - value)).toBeLessThan(TOLERANCE * (1 + Math.abs(value)));
    }
  }
}

const schema = z.object(
  Object.fromEntries(Object.entries(algorithmOptions).map(([name, option]) => [name, option.schema])),
);
const fromOptions = (given: object = {}) => algorithmFromOptions(schema.parse(given) as AlgorithmValues);

const isSingle = (c: Case, i: number) => c.rows.filter(row => row.group === c.rows[i]!.group).length === 1;

describe.each(Object.entries(peers))('%s', (name, peer) => {
  const cases = golden.cases.filter(c => c.kind !== 'difference' && name in c.expected);

  it('gives the same numbers', () => {
    expect(cases.length).toBeGreaterThanOrEqual(20);
    for (const c of cases) {
      const actual = run(c, peer);
      // A group of one is a difference of its own below.
      const compared = c.rows.map((_, i) => i).filter(i => peer.kl || name === 'verl remax' || !isSingle(c, i));
      expectClose(
        compared.map(i => actual[i]!),
        compared.map(i => c.expected[name]![i]!),
      );
    }
  });
});

describe('gigpo of its authors', () => {
  it('gives the same numbers, with exact and similar states and both normalisations', () => {
    expect(golden.gigpo.length).toBeGreaterThanOrEqual(20);
    for (const c of golden.gigpo) {
      const { omega, norm, gamma, similarity: alike } = c;
      const estimator = gigpo({ omega, norm, gamma, similarity: alike });
      const { advantages } = estimator.estimate({ trajectories: trajectories(c) });
      const perTurn = c.rows.map((row, i) => {
        let at = 0;
        return row.turns.map(turn => {
          const value = advantages[i]![at]!;
          at += turn.tokens;
          return value;
        });
      });
      const several = c.rows.map((_, i) => i).filter(i => !isSingle(c as unknown as Case, i));
      expectClose(
        several.map(i => perTurn[i]!),
        several.map(i => c.expected[i]!),
      );
    }
  });
});

describe('similarity of difflib', () => {
  it('is the same', () => {
    for (const [a, b, ratio] of golden.similarity) expect(similarity(a, b)).toBeCloseTo(ratio, 6);
  });
});

describe('deliberate differences', () => {
  const difference = golden.cases.find(c => c.kind === 'difference')!;
  const [first, second] = difference.rows[0]!.turns.map(turn => turn.tokens) as [number, number];

  it('tokens of the environment do not discount (OpenRLHF counts them)', () => {
    // One reward of 1 at the end; four tokens of the environment lie between the turns.
    const ours = reinforce({ gamma: 0.9, time: 'token', whitening: none }).estimate({
      trajectories: trajectories(difference),
    }).advantages[0]!;
    const theirs = difference.expected['openrlhf reinforce, no std']![0]!;
    expect(ours[0]).toBeCloseTo(0.9 ** (first + second - 1), 6);
    // Theirs is centred over the batch, so only differences between tokens compare.
    const decay = 0.9 ** (first + second - 1 + 4);
    expect(theirs[0]! - theirs.at(-1)!).toBeCloseTo(decay - 1, 6);
  });

  it('GAE bootstraps from the next turn across the environment (OpenRLHF decays through it)', () => {
    const values = difference.values.map(row => Float32Array.from(row));
    const options = { gamma: 0.9, lambda: 0.9, time: 'token' as const };
    const ours = gae({ ...options, whitening: { mean: true, std: false } }).estimate({
      trajectories: trajectories(difference),
      values,
    });
    const theirs = difference.expected['openrlhf gae, no std']![0]!;
    expect([...ours.returns![0]!]).toEqual(
      difference.expected['verl gae returns']![0]!.map(value => expect.closeTo(value, 5)),
    );
    // What the first turn still sees of a reward of 1, relative to the last token: ours more than theirs.
    const [a, b] = [ours.advantages[0]!, theirs].map(row => row[first - 1]! - row.at(-1)!) as [number, number];
    expect(a).toBeGreaterThan(b + 0.2);
  });

  it('a group of one learns nothing (verl trains it on its raw reward)', () => {
    const c = golden.cases.find(({ rows }) => rows.length === 4 && rows[0]!.group !== rows[1]!.group)!;
    const reward = c.rows[0]!.turns.at(-1)!.reward;
    for (const name of ['verl grpo', 'verl dr_grpo', 'verl rloo']) {
      expect(run(c, peers[name]!)[0]![0]).toBe(0);
      expect(c.expected[name]![0]![0]).toBeCloseTo(reward, 5);
    }
  });

  it('a reward stays at the turn that earned it (OpenRLHF sums all onto the last token)', () => {
    const c = golden.differences.turns;
    expect(run(c, peers['openrlhf rloo']!)).toEqual([
      [0, 0, -1, -1],
      [0, 0, 1, 1],
    ]);
    expect(c.expected['openrlhf rloo']).toEqual([
      [0, 0, 0, 0],
      [0, 0, 0, 0],
    ]);
  });

  it('rewards are clipped before they are compared (OpenRLHF clips what is left of them after the baseline)', () => {
    const c = golden.differences.clip;
    const { advantages } = computeAdvantages(rloo({ rewardClip: [0, 1] }), { trajectories: trajectories(c) });
    // Rewards of 30 and 0, and of 3 and 2.
    expect(advantages.map(row => row[0])).toEqual([1, -1, 0, 0]);
    expect(c.expected['openrlhf rloo, clip 0 1']!.map(row => row[0])).toEqual([1, 0, 1, 0]);
  });

  it('rewards are not clipped unless a range is given (OpenRLHF clips to ±10)', () => {
    const c = golden.differences.clip;
    const algorithm = fromOptions({ 'algo.advantage.estimator': 'rloo' });
    const { advantages } = computeAdvantages(algorithm, { trajectories: trajectories(c) });
    expect(advantages.map(row => row[0])).toEqual([30, -30, 1, -1]);
    expect(golden.openrlhf_defaults['reward.clip_range']).toEqual([-10, 10]);
    expect(c.expected['openrlhf rloo, default clip']!.map(row => row[0])).toEqual([10, -10, 1, -1]);
  });

  it('there is no KL penalty by default (OpenRLHF 0.01)', () => {
    expect(algorithmOptions['algo.kl.init_coef'].schema.parse(undefined)).toBe(0);
    expect(fromOptions().needs.reference).toBe(false);
    expect(golden.openrlhf_defaults['algo.kl.init_coef']).toBe(0.01);
  });

  it('a group of equal rewards stays at zero in reinforce_baseline (OpenRLHF and verl subtract the batch mean)', () => {
    const c = golden.differences.equal;
    const first = (rows: readonly number[][]) => rows.map(row => row[0]!);
    const ours = first(run(c, { make: () => reinforceBaseline(), kl: false }));
    // Tokens of −0.5 outnumber those of 0.5 by four to two among the ten, so the mean is −0.1.
    const deviation = Math.sqrt(0.15 - 0.1 ** 2);
    expect(ours).toEqual([0, 0, 0.5, -0.5].map(value => expect.closeTo(value / deviation, 5)));
    const theirs = first(c.expected['openrlhf reinforce_baseline']!);
    expect(theirs).toEqual([0.1, 0.1, 0.6, -0.4].map(value => expect.closeTo(value / deviation, 5)));
    expect(first(run(c, peers['openrlhf reinforce_baseline']!))).toEqual(theirs.map(value => expect.closeTo(value, 5)));
    expect(first(c.expected['verl reinforce_baseline']!)[0]).toBeCloseTo(theirs[0]! * Math.sqrt(9 / 10), 5);
  });

  it('group_norm adds 1e-6 to the standard deviation, as verl (OpenRLHF 1e-9)', () => {
    const c = golden.differences.near;
    const half = 0.5e-6;
    const deviation = half * Math.SQRT2;
    const ours = run(c, peers['verl grpo']!)[1]![0]!;
    expect(ours).toBeCloseTo(half / (deviation + 1e-6), 5);
    expect(c.expected['verl grpo']![1]![0]).toBeCloseTo(ours, 5);
    expect(c.expected['openrlhf group_norm']![1]![0]).toBeCloseTo(half / (deviation + 1e-9), 5);
  });

  it('discounting a group baseline per token is refused (OpenRLHF sets gamma to 1)', () => {
    const c = golden.differences.discount;
    expect(() => leaveOneOut({ gamma: c.gamma, time: 'token' })).toThrow(
      'rloo with gamma 0.5 needs time counted in turns',
    );
    expect(c.expected['openrlhf rloo']).toEqual(run({ ...c, gamma: 1 }, peers['openrlhf rloo']!));
  });

  it('whitening divides by the population variance, as OpenRLHF; verl by the sample variance', () => {
    const c = golden.cases.find(({ expected }) => 'verl reinforce_baseline' in expected)!;
    const tokens = c.kl.reduce((sum, row) => sum + row.length, 0);
    const ours = run({ ...c, beta: 0 }, peers['openrlhf reinforce_baseline']!);
    const theirs = c.expected['verl reinforce_baseline']!;
    expect(ours[0]![0]! / theirs[0]![0]!).toBeCloseTo(Math.sqrt(tokens / (tokens - 1)), 4);
  });

  it('difflib drops frequent characters of long texts; here they count', () => {
    const [a, b, ratio] = golden.similarity.at(-1)!;
    expect(similarity(a, b)).toBeCloseTo(ratio, 6);
    expect(ratio).toBeGreaterThan(0.99);
    expect(golden.similarity_with_autojunk).toBeLessThan(0.9);
  });
});
