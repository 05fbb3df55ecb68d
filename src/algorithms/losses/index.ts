import { unknownName } from '../names.ts';
import { cispoObjective } from './cispo.ts';
import { gspoObjective } from './gspo.ts';
import type { PolicyObjective } from './policy.ts';
import { ppoObjective } from './ppo.ts';
import { importanceSamplingObjective, reinforceObjective } from './reinforce.ts';
import { sapoObjective } from './sapo.ts';

export const POLICY_LOSSES = ['ppo', 'gspo', 'cispo', 'sapo', 'importance_sampling', 'reinforce'] as const;
export type PolicyLossType = (typeof POLICY_LOSSES)[number];

export interface ObjectiveOptions {
  /** The loss's own default when not given. */
  readonly clip?: readonly [low: number, high: number] | undefined;
  readonly dualClip?: number | undefined;
}

/**
 * A policy objective by name. A clip range for a loss that has none is refused, and so is a dual clip outside ppo.
 * @throws Error listing the losses, nearest name first, when there is no such loss
 */
export function objective(type: string, options: ObjectiveOptions = {}): PolicyObjective {
  const { clip, dualClip } = options;
  if (!POLICY_LOSSES.includes(type as PolicyLossType)) throw unknownName('policy loss', type, POLICY_LOSSES);
  const clipped = type === 'ppo' || type === 'gspo' || type === 'cispo';
  if (clip !== undefined && !clipped) throw new Error(`the policy loss '${type}' has no clip range; leave it out`);
  if (dualClip !== undefined && type !== 'ppo') throw new Error(`a dual clip belongs to 'ppo', not to '${type}'`);
  switch (type as PolicyLossType) {
    case 'ppo':
      return ppoObjective({ clip: clip ?? [0.2, 0.2], dualClip });
    case 'gspo':
      return gspoObjective({ clip: clip ?? [3e-4, 4e-4] });
    case 'cispo':
      return cispoObjective({ clip: clip ?? [1, 4] });
    case 'sapo':
      return sapoObjective({ positive: 1, negative: 1.05 });
    case 'importance_sampling':
      return importanceSamplingObjective();
    case 'reinforce':
      return reinforceObjective();
  }
}
