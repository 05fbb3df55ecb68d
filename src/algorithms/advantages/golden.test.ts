import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { chain } from '../../../tests/support/trajectories.ts';
import type { Trajectory } from '../../episode/trajectory.ts';
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

  it('a group of equal rewards stays at zero in reinforce_baseline (whitening moves it)', () => {
    const batch = [0.5, 0.5, 1, 0].map((reward, i) =>
      chain({ group: i < 2 ? 'same' : 'other', turns: [{ tokens: 1 + i, reward }] }),
    );
    const ours = reinforceBaseline().estimate({ trajectories: batch }).advantages;
    const published = reinforceBaseline({ whitening: full }).estimate({ trajectories: batch }).advantages;
    // Tokens of −0.5 outnumber those of 0.5 by four to three, so the mean is −0.05.
    expect(ours[0]![0]).toBe(0);
    expect(published[0]![0]).toBeCloseTo(0.05 / Math.sqrt(0.175 - 0.05 ** 2), 5);
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
