import type { Leaves } from '../../episode/episode.ts';
import type { Trajectory } from '../../episode/trajectory.ts';
import type { Time } from '../returns.ts';

/**
 * An estimator turns rewards into one advantage per policy token. It is a pure function of the trajectories; the
 * options are bound when it is made.
 */
export interface Estimator {
  readonly name: string;
  /** Reads `values`, and returns what the critic should have said. */
  readonly needsCritic: boolean;
  /** Fewest samples per task that give it a baseline. */
  readonly minimumGroup: number;
  /** Reads `greedyReturns`. */
  readonly needsGreedy: boolean;
  /** What it takes several rows of one episode for, whatever the episode says. */
  readonly leaves?: Leaves | undefined;
  estimate(input: AdvantageInput): AdvantageOutput;
}

/** P is the number of policy tokens of a trajectory; arrays [P] are in the order of those tokens. */
export interface AdvantageInput {
  /** No failed episodes. Groups are the trajectories of equal `group`; all rows of an episode are given together. */
  readonly trajectories: readonly Trajectory[];
  /** Per trajectory [P]: what is taken off the reward of each token (β times the KL estimate). */
  readonly penalties?: readonly Float32Array[];
  /** Per trajectory [P]: the critic's value of the state in which each token was sampled. */
  readonly values?: readonly Float32Array[];
  /** Per trajectory [P]: 0 for tokens that are left out of the loss; they are left out of whitening too. */
  readonly keep?: readonly Uint8Array[];
  /** Group → return of the greedy answer to its task (ReMax). */
  readonly greedyReturns?: ReadonlyMap<string, number>;
}

export interface AdvantageOutput {
  /** Per trajectory [P]. */
  readonly advantages: Float32Array[];
  /** Per trajectory [P]: targets of the critic. */
  readonly returns?: Float32Array[];
  /** `return`, the mean return after penalties; what else the estimator has to say. */
  readonly metrics: Readonly<Record<string, number>>;
}

export interface CreditOptions {
  /** Discount in [0, 1]; 1 when not given. */
  readonly gamma?: number | undefined;
  /** What γ and λ count; turns when not given. */
  readonly time?: Time | undefined;
  /** What several rows of one episode are taken for; what the episode says when not given. */
  readonly leaves?: Leaves | undefined;
}

export function checkedCredit(options: CreditOptions): {
  readonly gamma: number;
  readonly time: Time;
  readonly leaves: Leaves | undefined;
} {
  const { gamma = 1, time = 'turn', leaves } = options;
  if (!(gamma >= 0 && gamma <= 1)) throw new Error(`gamma must be in [0, 1], got ${gamma}`);
  return { gamma, time, leaves };
}
