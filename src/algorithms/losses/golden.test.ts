import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { chain, chainEpisode } from '../../../tests/support/trajectories.ts';
import { type Aggregation, aggregate } from '../aggregate.ts';
import { lossInputs } from '../algorithm.ts';
import { type Correction, correct } from '../corrections.ts';
import { klPenalty } from '../kl.ts';
import { evaluate } from '../numeric.ts';
import type { Loss } from '../ops.ts';
import { overlongPenalty } from '../penalties.ts';
import { drGrpo, grpo } from '../recipes.ts';
import { objective } from './index.ts';
import { likelihoodLoss } from './likelihood.ts';
import { type PolicyLossOptions, policyLoss } from './policy.ts';
import { valueLoss } from './value.ts';

/** Against the functions of OpenRLHF, verl, TRL and AReaL; see tools/golden/losses.py. */

const NAMES = [
  'logprobs',
  'old',
  'reference',
  'behaviour',
  'advantages',
  'entropy',
  'values',
  'old_values',
  'returns',
  'versions',
] as const;

interface Expected {
  readonly loss: number;
  readonly gradient: number[][];
  readonly clip?: number;
  readonly dual?: number;
  readonly kl?: number;
}

type Case = Readonly<Record<(typeof NAMES)[number], number[][]>> & {
  readonly kind: 'plain' | 'same' | 'huge';
  readonly expected: Readonly<Record<string, Expected>>;
  readonly weights?: Readonly<Record<string, number[][]>>;
  readonly penalty?: Readonly<Record<string, number[][]>>;
};

const golden = JSON.parse(
  readFileSync(new URL('../../../tests/goldens/algorithms/losses.json', import.meta.url), 'utf8'),
) as { cases: Case[]; overlong: [number, number][] };

interface Setup {
  readonly loss: Loss;
  readonly aggregation: Aggregation;
  readonly correction?: Correction;
}

const token: Aggregation = { mode: 'token' };
const sequence: Aggregation = { mode: 'sequence' };
const constant: Aggregation = { mode: 'constant', length: 16 };
const higher = [0.2, 0.28] as const;

function policy(
  type: string,
  options: Parameters<typeof objective>[1] & Omit<PolicyLossOptions, 'objective' | 'correction'> = {},
  aggregation = token,
  correction?: Correction,
): Setup {
  const { clip, dualClip, ...rest } = options;
  const loss = policyLoss({
    objective: objective(type, { clip, dualClip }),
    ...rest,
    correction: correction !== undefined,
  });
  return { loss, aggregation, ...(correction && { correction }) };
}

const bounds = { low: 0.5, high: 5 };
const setups: Record<string, Setup> = {
  'openrlhf ppo': policy('ppo'),
  'openrlhf ppo, clip-higher': policy('ppo', { clip: higher }),
  'openrlhf ppo, dual clip': policy('ppo', { dualClip: 3 }),
  'openrlhf ppo, no clip': policy('importance_sampling'),
  'openrlhf gspo': policy('gspo', { clip: [0.2, 0.2] }, sequence),
  'openrlhf tis': policy('ppo', {}, token, { type: 'tis', ...bounds }),
  'openrlhf icepop': policy('ppo', {}, token, { type: 'icepop', ...bounds }),
  'openrlhf sft': { loss: likelihoodLoss(), aggregation: token },
  'openrlhf value': { loss: valueLoss(), aggregation: token },
  'openrlhf value, clip': { loss: valueLoss({ clip: 0.5 }), aggregation: token },
  'verl ppo': policy('ppo', { clip: higher, dualClip: 3 }),
  'verl ppo, sequence': policy('ppo', { clip: higher, dualClip: 3 }, sequence),
  'verl ppo, constant': policy('ppo', { clip: higher, dualClip: 3 }, constant),
  'verl gspo': policy('gspo', { clip: higher }, sequence),
  'verl cispo': policy('cispo', { clip: [1, 4] }),
  'verl sapo': policy('sapo', {}, sequence),
  'verl reinforce': policy('reinforce'),
  'verl value, clip': { loss: valueLoss({ clip: 0.5 }), aggregation: token },
  'trl dapo': policy('ppo', { clip: higher }),
  'trl grpo': policy('ppo', { clip: higher }, sequence),
  'trl dr_grpo': policy('ppo', { clip: higher }, constant),
  'trl dapo, kl': policy('ppo', { clip: higher, kl: 'k3' }),
  'trl dapo, entropy': policy('ppo', { clip: higher, entropy: 0.01 }),
  'trl cispo': policy('cispo', { clip: [1, 4] }),
  'trl sapo': policy('sapo', {}, sequence),
  'trl gspo': policy('gspo', { clip: higher }, sequence),
  'areal decoupled': policy('ppo', { clip: higher }, token, { type: 'tis', ...bounds }),
  'areal loglinear': policy('ppo', { clip: higher, loglinear: { cap: 5 } }),
};

const floats = (rows: readonly (readonly number[])[]) => rows.map(row => Float32Array.from(row));

/** The learner of tools/golden/losses.py is at this version. */
const VERSION = 5;

function versionShares({ logprobs, versions }: Case): readonly Float32Array[] {
  const trajectories = logprobs.map(({ length }, i) => {
    const row = chain({ turns: length > 0 ? [{ tokens: length }] : [] });
    const sampled = versions[i]!.values();
    return { ...row, versions: row.versions.map(version => (version < 0 ? version : sampled.next().value!)) };
  });
  const advantages = logprobs.map(({ length }) => new Float32Array(length));
  const algorithm = grpo({ ratioAgainst: 'loglinear' });
  return lossInputs(algorithm, { trajectories, advantages, version: VERSION }).inputs.alpha!;
}

function run(c: Case, { loss, aggregation, correction }: Setup) {
  const rows = c.logprobs.map(({ length }) => chain({ turns: length > 0 ? [{ tokens: length }] : [] }));
  const { weights, share } = aggregate(rows, aggregation);
  const inputs: Record<string, readonly ArrayLike<number>[]> = { weights, share };
  for (const name of NAMES) inputs[name] = c[name];
  inputs.beta = c.logprobs.map(row => row.map(() => 0.05));
  inputs.alpha = versionShares(c);
  if (loss.inputs.includes('alpha')) inputs.old = c.behaviour;
  if (correction) inputs.correction = correct(correction, floats(c.behaviour), floats(c.old)).weights;
  const flat = (name: string) => inputs[name]!.flatMap(row => Array.from(row));
  const result = evaluate(loss, {
    sequences: c.logprobs.map(row => row.length),
    logprobs: flat('logprobs'),
    entropy: flat('entropy'),
    values: flat('values'),
    inputs: Object.fromEntries(loss.inputs.map(name => [name, flat(name)])),
  });
  const rest = [...(result.gradient.values ?? result.gradient.logprobs)];
  return { ...result, rows: c.logprobs.map(({ length }) => rest.splice(0, length)) };
}

/** Weights and corrections are float32 (6e-8 relative); the files hold seven digits. */
const TOLERANCE = 1e-6;

function close(actual: number, expected: number, tolerance = TOLERANCE): void {
  expect(Math.abs(actual - expected)).toBeLessThanOrEqual(tolerance * (1 + Math.abs(expected)));
}

function expectClose(
  actual: readonly (readonly number[])[],
  expected: readonly (readonly number[])[],
  by?: number,
): void {
  expect(actual.map(row => row.length)).toEqual(expected.map(row => row.length));
  for (const [i, row] of expected.entries()) for (const [t, value] of row.entries()) close(actual[i]![t]!, value, by);
}

const hasEmptyRow = (c: Case) => c.logprobs.some(row => row.length === 0);
/** Rows without tokens are counted otherwise by these, and TRL does not bound ratios: named under deliberate differences. */
const otherDenominator = ['verl ppo, constant', 'trl grpo', 'trl sapo', 'trl gspo'];
const differs = (name: string, c: Case) =>
  (otherDenominator.includes(name) && hasEmptyRow(c)) || (name === 'trl dapo' && c.kind === 'huge');

describe.each(Object.entries(setups))('%s', (name, setup) => {
  const cases = golden.cases.filter(c => name in c.expected && !differs(name, c));

  it('has the same loss, gradient and metrics', () => {
    expect(cases.length).toBeGreaterThanOrEqual(20);
    for (const c of cases) {
      const { loss, metrics, rows } = run(c, setup);
      const { loss: value, gradient, clip, dual, kl } = c.expected[name]!;
      close(loss, value);
      expectClose(rows, gradient);
      if (clip !== undefined && 'ppo_clip_ratio' in metrics) close(metrics.ppo_clip_ratio!, clip);
      if (dual !== undefined && 'ppo_dual_clip_ratio' in metrics) close(metrics.ppo_dual_clip_ratio!, dual);
      if (kl !== undefined) close(metrics.ppo_kl!, kl);
    }
  });
});

describe('off-policy weights', () => {
  it.each<[string, Correction]>([
    ['verl token-tis', { type: 'tis', low: 0, high: 2 }],
    ['verl sequence-tis', { type: 'sequence-tis', low: 0, high: 2 }],
    ['verl sequence-reject', { type: 'sequence-reject', ...bounds }],
    ['verl geometric-reject', { type: 'geometric-reject', ...bounds }],
    ['areal m2po', { type: 'm2po', low: 0, high: 0.08 }],
  ])('%s', (name, correction) => {
    const cases = golden.cases.filter(c => c.weights && name in c.weights);
    expect(cases.length).toBeGreaterThanOrEqual(20);
    for (const c of cases) {
      const { weights } = correct(correction, floats(c.behaviour), floats(c.old));
      expectClose(
        weights.map(row => [...row]),
        c.weights![name]!,
        // A float32 log-prob of −100 is known to 4e-6 nats, and so is the ratio.
        c.kind === 'huge' ? 1e-5 : TOLERANCE,
      );
    }
  });
});

describe('KL per token', () => {
  it.each([
    ['openrlhf k1', 'k1'],
    ['openrlhf k2', 'k2'],
    ['openrlhf k3', 'k3'],
    ['verl k3', 'k3'],
  ] as const)('%s, ±100 nats included', (name, estimator) => {
    for (const c of golden.cases.filter(({ penalty }) => penalty)) {
      const penalty = c.logprobs.map((row, i) => [...klPenalty(estimator, row, c.reference[i]!)]);
      expectClose(penalty, c.penalty![name]!);
    }
  });
});

it('the overlong penalty of OpenRLHF', () => {
  const penalty = overlongPenalty({ maxTokens: 16, buffer: 4, factor: 0.5 });
  for (const [tokens, expected] of golden.overlong) {
    const episode = penalty(chainEpisode({ turns: [{ tokens, reward: 1, environment: 3 }] }));
    expect(episode.steps[0]!.reward).toBeCloseTo(expected, 6);
  }
});

describe('deliberate differences', () => {
  it('seq-mask-tis clamps its weights (OpenRLHF describes a clamp and has none)', () => {
    const name = 'openrlhf seq-mask-tis';
    const setup = policy('ppo', {}, token, { type: 'seq-mask-tis', ...bounds });
    let [same, different] = [0, 0];
    const cases = golden.cases.filter(({ expected }) => name in expected);
    expect(cases.length).toBeGreaterThanOrEqual(20);
    for (const c of cases) {
      const { rows } = run(c, setup);
      for (const [i, row] of c.expected[name]!.gradient.entries()) {
        for (const [t, theirs] of row.entries()) {
          const ratio = Math.exp(c.old[i]![t]! - c.behaviour[i]![t]!);
          const ours = rows[i]![t]!;
          if (ratio >= bounds.low && ratio <= bounds.high) close(ours, theirs);
          else if (theirs !== 0) {
            close(ours / theirs, Math.min(Math.max(ratio, bounds.low), bounds.high) / ratio);
            different++;
            continue;
          }
          same++;
        }
      }
    }
    expect(same).toBeGreaterThan(100);
    expect(different).toBeGreaterThanOrEqual(5);
  });

  it('an episode without tokens counts in the constant denominator, as in TRL (verl leaves it out)', () => {
    const name = 'verl ppo, constant';
    const cases = golden.cases.filter(c => c.kind === 'plain' && hasEmptyRow(c));
    expect(cases.length).toBeGreaterThan(0);
    for (const c of cases) {
      const ours = run(c, setups[name]!).loss;
      close(ours * c.logprobs.length, c.expected[name]!.loss * (c.logprobs.length - 1));
      close(run(c, setups['trl dr_grpo']!).loss, c.expected['trl dr_grpo']!.loss);
    }
  });

  it.each(['trl grpo', 'trl sapo', 'trl gspo'])(
    'an episode without tokens does not count in a mean over episodes, as in verl (%s counts it)',
    name => {
      const cases = golden.cases.filter(c => name in c.expected && hasEmptyRow(c));
      expect(cases.length).toBeGreaterThanOrEqual(5);
      for (const c of cases) {
        const empty = c.logprobs.filter(row => row.length === 0).length;
        const [ours, theirs] = [run(c, setups[name]!).loss, c.expected[name]!.loss];
        close(ours * (c.logprobs.length - empty), theirs * c.logprobs.length);
      }
    },
  );

  it('dr_grpo divides by a constant length (OpenRLHF keeps the token mean)', () => {
    const { loss, aggregation } = drGrpo({ length: 16, clip: higher });
    const cases = golden.cases.filter(c => 'openrlhf ppo, clip-higher' in c.expected && c.kind === 'plain');
    expect(cases.length).toBeGreaterThanOrEqual(20);
    for (const c of cases) {
      const tokens = c.logprobs.flat().length;
      const [constant, mean] = [run(c, { loss, aggregation }).loss, c.expected['openrlhf ppo, clip-higher']!.loss];
      close(constant * 16 * c.logprobs.length, mean * tokens);
      expect(tokens).toBeLessThan(16 * c.logprobs.length);
    }
  });

  it('ratios are bounded by e^20, as in OpenRLHF and verl (TRL has no bound)', () => {
    const cases = golden.cases.filter(({ kind }) => kind === 'huge');
    const pairs = cases.map(c => [run(c, setups['trl dapo']!).loss, c.expected['trl dapo']!.loss] as const);
    for (const [ours] of pairs) expect(Math.abs(ours)).toBeLessThan(2 * Math.exp(20));
    // Where the ratio of a bad token is e^100, that token is all there is to the loss.
    expect(Math.max(...pairs.map(([, theirs]) => theirs))).toBeGreaterThan(Math.exp(90));
  });
});
