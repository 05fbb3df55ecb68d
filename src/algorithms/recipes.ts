import type { Leaves } from '../episode/episode.ts';
import { gae } from './advantages/gae.ts';
import { type GigpoOptions, gigpo as gigpoAdvantage } from './advantages/gigpo.ts';
import { reinforceBaseline as baselineAdvantage, drGrpoAdvantage, groupNorm, leaveOneOut } from './advantages/group.ts';
import { reinforce } from './advantages/reinforce.ts';
import type { Whitening } from './advantages/whiten.ts';
import type { Aggregation } from './aggregate.ts';
import { type Algorithm, type AlgorithmParts, createAlgorithm } from './algorithm.ts';
import { cispoObjective } from './losses/cispo.ts';
import { gspoObjective } from './losses/gspo.ts';
import type { PolicyObjective } from './losses/policy.ts';
import { ppoObjective } from './losses/ppo.ts';
import type { Time } from './returns.ts';

/** The algorithms by their published names: an estimator, an objective and an aggregation that belong together. */

export interface RecipeOptions
  extends Pick<AlgorithmParts, 'aggregation' | 'kl' | 'entropy' | 'correction' | 'ratioAgainst' | 'rewardClip'> {
  /** ε, or [ε_low, ε_high] for clip-higher; 0.2 when not given. */
  readonly clip?: number | readonly [low: number, high: number] | undefined;
  readonly dualClip?: number | undefined;
  /** Replaces the objective; `clip` and `dualClip` then belong to it. */
  readonly objective?: PolicyObjective | undefined;
  readonly gamma?: number | undefined;
  readonly time?: Time | undefined;
  readonly leaves?: Leaves | undefined;
}

/** Group relative policy optimisation: rewards normalised inside the group. */
export function grpo(options: RecipeOptions & { readonly epsilon?: number | undefined } = {}): Algorithm {
  return recipe('grpo', groupNorm(options), options);
}

/**
 * GRPO without its two biases: no division by the group's standard deviation, and a constant in place of the answer's
 * length. @param options.length that constant, usually the longest answer allowed, in tokens
 */
export function drGrpo(options: RecipeOptions & { readonly length: number }): Algorithm {
  const aggregation: Aggregation = { mode: 'constant', length: options.length };
  return recipe('dr_grpo', drGrpoAdvantage(options), { ...options, aggregation: options.aggregation ?? aggregation });
}

/** REINFORCE leave-one-out. */
export function rloo(options: RecipeOptions = {}): Algorithm {
  return recipe('rloo', leaveOneOut(options), options);
}

/** REINFORCE++ with the group's mean as baseline. */
export function reinforceBaseline(
  options: RecipeOptions & { readonly whitening?: Whitening | undefined } = {},
): Algorithm {
  return recipe('reinforce_baseline', baselineAdvantage(options), options);
}

/** REINFORCE++: no group, no critic; the batch is the baseline. */
export function reinforcePlusPlus(
  options: RecipeOptions & { readonly whitening?: Whitening | undefined } = {},
): Algorithm {
  return recipe('reinforce_plus_plus', reinforce(options), options);
}

/** PPO with generalised advantage estimation; needs a critic. */
export function ppo(
  options: RecipeOptions & { readonly lambda?: number | undefined; readonly whitening?: Whitening | undefined } = {},
): Algorithm {
  return recipe('ppo', gae(options), options);
}

/** Group-in-group policy optimisation: episodes compared in their group, turns with turns taken in the same state. */
export function gigpo(options: RecipeOptions & GigpoOptions = {}): Algorithm {
  return recipe('gigpo', gigpoAdvantage(options), options);
}

/** Group sequence policy optimisation: one ratio per sequence. The paper's clip range when none is given. */
export function gspo(options: RecipeOptions & { readonly epsilon?: number | undefined } = {}): Algorithm {
  const objective = options.objective ?? gspoObjective({ clip: clipRange(options.clip ?? [3e-4, 4e-4]) });
  const aggregation = options.aggregation ?? { mode: 'sequence' };
  return recipe('gspo', groupNorm(options), { ...options, aggregation, objective });
}

/** GRPO with clipped importance weights that leave every token its gradient; weights up to 5 when no clip is given. */
export function cispo(options: RecipeOptions & { readonly epsilon?: number | undefined } = {}): Algorithm {
  const objective = options.objective ?? cispoObjective({ clip: clipRange(options.clip ?? [1, 4]) });
  return recipe('cispo', groupNorm(options), { ...options, objective });
}

function recipe(name: string, estimator: AlgorithmParts['estimator'], options: RecipeOptions): Algorithm {
  const { clip = 0.2, dualClip, objective, aggregation, kl, entropy, correction, ratioAgainst, rewardClip } = options;
  return createAlgorithm({
    name,
    estimator,
    objective: objective ?? ppoObjective({ clip: clipRange(clip), dualClip }),
    aggregation,
    kl,
    entropy,
    correction,
    ratioAgainst,
    rewardClip,
  });
}

export function clipRange(clip: number | readonly [low: number, high: number]): readonly [low: number, high: number] {
  return typeof clip === 'number' ? [clip, clip] : clip;
}
