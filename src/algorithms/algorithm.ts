import { SOURCE, type Trajectory } from '../episode/trajectory.ts';
import type { AdvantageOutput, Estimator } from './advantages/contract.ts';
import { type Aggregation, aggregate } from './aggregate.ts';
import { type Correction, checkedCorrection, correct } from './corrections.ts';
import { KL_ESTIMATORS, type KlControllerOptions, type KlEstimator, klController, klPenalty } from './kl.ts';
import { type PolicyObjective, policyLoss } from './losses/policy.ts';
import { unknownName } from './names.ts';
import type { Loss } from './ops.ts';

/** How the policy is kept near the reference. */
export interface KlTerm extends KlControllerOptions {
  /** k1 in the reward and k3 in the loss when not given. */
  readonly estimator?: KlEstimator | undefined;
  /** Taken off each token's reward, or added to the loss; in the reward when not given. */
  readonly placement?: 'reward' | 'loss' | undefined;
}

/**
 * Log-probs that the ratio of the objective is taken against: computed by the learner before the update, the sampler's,
 * or an approximation of the former from the latter by the versions of the tokens, which needs no forward pass.
 * Source of `loglinear`: AReaL, log-linear proximal approximation, docs/en/algorithms/prox_approx.md
 */
export const RATIO_AGAINST = ['proximal', 'behaviour', 'loglinear'] as const;
export type RatioAgainst = (typeof RATIO_AGAINST)[number];

/** Bound of the behaviour weight under `loglinear`. */
const LOGLINEAR_CAP = 5;

/** What an algorithm is made of; `createAlgorithm` checks that it makes sense. */
export interface AlgorithmParts {
  readonly name: string;
  readonly estimator: Estimator;
  readonly objective: PolicyObjective;
  /** Token mean when not given. */
  readonly aggregation?: Aggregation | undefined;
  /** Without it, or with coefficient 0 and no target, there is no reference model. */
  readonly kl?: KlTerm | undefined;
  /** Entropy bonus; 0 only reports the entropy. */
  readonly entropy?: number | undefined;
  readonly correction?: Correction | undefined;
  /** The learner's log-probs before the update when not given; `behaviour` saves that forward pass. */
  readonly ratioAgainst?: RatioAgainst | undefined;
  /** [low, high] bounds of the reward of a step, applied before any baseline. */
  readonly rewardClip?: readonly [low: number, high: number] | undefined;
}

export interface Algorithm {
  readonly name: string;
  readonly estimator: Estimator;
  readonly loss: Loss;
  readonly aggregation: Aggregation;
  readonly kl:
    | (KlControllerOptions & { readonly estimator: KlEstimator; readonly placement: 'reward' | 'loss' })
    | undefined;
  readonly correction: Correction | undefined;
  readonly ratioAgainst: RatioAgainst;
  readonly rewardClip: readonly [low: number, high: number] | undefined;
  /** Log-probs that must be computed before the update. */
  readonly needs: { readonly proximal: boolean; readonly reference: boolean; readonly critic: boolean };
}

/** @throws Error naming the part that makes no sense, and why. */
export function createAlgorithm(parts: AlgorithmParts): Algorithm {
  const { name, estimator, objective, aggregation = { mode: 'token' }, entropy, rewardClip } = parts;
  const ratioAgainst = parts.ratioAgainst ?? 'proximal';
  const kl = checkedKl(parts.kl);
  const correction = parts.correction && checkedCorrection(parts.correction);
  if (correction !== undefined && ratioAgainst !== 'proximal') {
    throw new Error(
      `${name}: a ratio against '${ratioAgainst}' corrects for the sampler already, and '${correction.type}' would do it ` +
        `twice; take the ratio against the proximal policy or drop the correction`,
    );
  }
  if (aggregation.mode === 'constant' && !(aggregation.length > 0)) {
    throw new Error(`${name}: constant aggregation needs a length > 0, got ${aggregation.length}`);
  }
  if (rewardClip !== undefined && !(rewardClip[0] < rewardClip[1])) {
    throw new Error(`${name}: the reward clip range must be ordered, low < high, got ${rewardClip.join(' ')}`);
  }
  return {
    name,
    estimator,
    aggregation,
    kl,
    correction,
    ratioAgainst,
    rewardClip,
    loss: policyLoss({
      objective,
      kl: kl?.placement === 'loss' ? kl.estimator : undefined,
      entropy,
      correction: correction !== undefined,
      loglinear: ratioAgainst === 'loglinear' ? { cap: LOGLINEAR_CAP } : undefined,
    }),
    needs: {
      proximal: ratioAgainst === 'proximal' || kl?.placement === 'reward',
      reference: kl !== undefined,
      critic: estimator.needsCritic,
    },
  };
}

function checkedKl(kl: KlTerm | undefined): Algorithm['kl'] {
  if (kl === undefined) return undefined;
  const { placement = 'reward', coefficient, target, horizon } = kl;
  const estimator = kl.estimator ?? (placement === 'reward' ? 'k1' : 'k3');
  if (!KL_ESTIMATORS.includes(estimator)) throw unknownName('KL estimator', estimator, KL_ESTIMATORS);
  klController(kl);
  if (coefficient === 0) {
    if (target === undefined) return undefined;
    throw new Error(`a KL target of ${target} cannot move a coefficient of 0: it is changed by factors; start above 0`);
  }
  if (placement === 'loss' && estimator === 'k1') {
    throw new Error(
      'k1 as a loss has an expected gradient of zero and only adds noise; use k2 or k3, or k1 in the reward',
    );
  }
  return { estimator, placement, coefficient, target, horizon };
}

/** @throws Error when so many samples per task cannot give the estimator its baseline. */
export function checkGroupSize(algorithm: Pick<Algorithm, 'name' | 'estimator'>, samplesPerTask: number): void {
  const { name, minimumGroup } = algorithm.estimator;
  if (samplesPerTask >= minimumGroup) return;
  throw new Error(
    `the estimator '${name}' compares samples of one task and needs rollout.n_samples_per_prompt ≥ ${minimumGroup}, ` +
      `got ${samplesPerTask}; raise it, or use 'reinforce', which needs no group`,
  );
}

/** Everything that is known about the trajectories of a step. Arrays are per trajectory [P]. */
export interface StepData {
  readonly trajectories: readonly Trajectory[];
  /** Learner's log-probs before the update; required when `needs.proximal`. */
  readonly proximal?: readonly Float32Array[] | undefined;
  /** Required when `needs.reference`. */
  readonly reference?: readonly Float32Array[] | undefined;
  /** Required when `needs.critic`. */
  readonly values?: readonly Float32Array[] | undefined;
  /** KL coefficient now (klController). */
  readonly beta?: number | undefined;
  /** The learner's version at this update; required when the ratio is taken against `loglinear`. */
  readonly version?: number | undefined;
  /** Its version before the first update on these trajectories, that of the proximal policy; `version` − 1 when not given. */
  readonly proximalVersion?: number | undefined;
  /** Group → return of the greedy answer; required when the estimator needs it. */
  readonly greedyReturns?: ReadonlyMap<string, number> | undefined;
  /** 0 for tokens that are left out of the loss. */
  readonly keep?: readonly Uint8Array[] | undefined;
}

/**
 * Rewards to advantages, in this order: rewards are clipped, compared by the estimator, and the KL penalty is taken off
 * per token. Adds the metric `kl`, the mean estimate per token, when the KL is in the reward.
 * Penalties that depend on the episode (penalties.ts) come before this.
 */
export function computeAdvantages(algorithm: Algorithm, data: StepData): AdvantageOutput {
  const { estimator, kl } = algorithm;
  const trajectories = clipRewards(data.trajectories, algorithm.rewardClip);
  const { values, keep, greedyReturns } = data;
  const input = {
    trajectories,
    ...(values && { values }),
    ...(keep && { keep }),
    ...(greedyReturns && { greedyReturns }),
  };
  if (kl?.placement !== 'reward') return estimator.estimate(input);

  const reference = required(algorithm, 'reference', data.reference);
  const proximal = required(algorithm, 'proximal', data.proximal);
  const estimates = proximal.map((row, i) => klPenalty(kl.estimator, row, reference[i]!));
  const beta = data.beta ?? kl.coefficient;
  const output = estimator.estimate({ ...input, penalties: estimates.map(row => row.map(value => beta * value)) });
  const { share } = aggregate(trajectories, { mode: 'token' });
  return { ...output, metrics: { ...output.metrics, kl: weightedSum(share, estimates) } };
}

export interface LossInputs {
  /** What the loss reads: name → per trajectory [P]. */
  readonly inputs: Record<string, readonly Float32Array[]>;
  readonly metrics: Readonly<Record<string, number>>;
}

/** The arrays that `algorithm.loss` reads, for the trajectories of one optimizer step (a mini-batch of `computeAdvantages`'). */
export function lossInputs(algorithm: Algorithm, data: StepData & { advantages: readonly Float32Array[] }): LossInputs {
  const { trajectories, advantages } = data;
  const { weights, share } = aggregate(trajectories, algorithm.aggregation, data.keep);
  const behaviour = trajectories.map(behaviourLogprobs);
  const old = algorithm.ratioAgainst === 'proximal' ? required(algorithm, 'proximal', data.proximal) : behaviour;
  const inputs: Record<string, readonly Float32Array[]> = { advantages, old, weights, share };
  let metrics: Readonly<Record<string, number>> = {};
  if (algorithm.kl?.placement === 'loss') {
    const beta = data.beta ?? algorithm.kl.coefficient;
    inputs.reference = required(algorithm, 'reference', data.reference);
    inputs.beta = advantages.map(row => new Float32Array(row.length).fill(beta));
  }
  if (algorithm.ratioAgainst === 'loglinear') {
    const { version } = data;
    if (version === undefined) throw new Error(`${algorithm.name} needs the version of the learner`);
    const proximalVersion = data.proximalVersion ?? version - 1;
    inputs.alpha = trajectories.map(trajectory => proximalShare(trajectory, proximalVersion, version));
  }
  if (algorithm.correction !== undefined) {
    const corrected = correct(algorithm.correction, behaviour, old);
    inputs.correction = corrected.weights;
    metrics = corrected.metrics;
  }
  return { inputs, metrics };
}

/** [P] log-probs of the sampler, at the policy's tokens. */
export function behaviourLogprobs({ logprobs, sources }: Pick<Trajectory, 'logprobs' | 'sources'>): Float32Array {
  return logprobs.filter((_, t) => sources[t] === SOURCE.policy);
}

/** [P] (v_prox − v) / (v_now − v), v the version that sampled; 0 where that is the proximal policy itself. */
function proximalShare({ versions, sources }: Trajectory, proximal: number, now: number): Float32Array {
  const behaviour = versions.filter((_, t) => sources[t] === SOURCE.policy);
  return Float32Array.from(behaviour, version => (proximal > version ? (proximal - version) / (now - version) : 0));
}

function clipRewards(trajectories: readonly Trajectory[], range: Algorithm['rewardClip']): readonly Trajectory[] {
  if (range === undefined) return trajectories;
  const [low, high] = range;
  return trajectories.map(trajectory => ({
    ...trajectory,
    // Math.max and Math.min keep NaN, which the estimator refuses by name.
    steps: trajectory.steps.map(step => ({ ...step, reward: Math.min(Math.max(step.reward, low), high) })),
  }));
}

function required<T>(algorithm: Algorithm, what: string, value: T | undefined): T {
  if (value === undefined) throw new Error(`${algorithm.name} needs the ${what} log-probs, which were not given`);
  return value;
}

function weightedSum(weights: readonly Float32Array[], values: readonly Float32Array[]): number {
  let sum = 0;
  for (const [i, row] of weights.entries()) for (const [t, weight] of row.entries()) sum += weight * values[i]![t]!;
  return sum;
}
