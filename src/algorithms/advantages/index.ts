import { unknownName } from '../names.ts';
import type { Estimator } from './contract.ts';
import { type GaeOptions, gae } from './gae.ts';
import { type GigpoOptions, gigpo } from './gigpo.ts';
import { drGrpoAdvantage, groupNorm, leaveOneOut, optimalBaseline, reinforceBaseline } from './group.ts';
import { reinforce } from './reinforce.ts';
import { remax } from './remax.ts';
import { tree } from './tree.ts';

/** Every estimator by name. Each takes from the options what concerns it. */
export const ESTIMATORS = {
  group_norm: groupNorm,
  reinforce_baseline: reinforceBaseline,
  rloo: leaveOneOut,
  dr_grpo: drGrpoAdvantage,
  opo: optimalBaseline,
  gigpo,
  reinforce,
  remax,
  gae,
  tree,
} as const satisfies Record<string, (options: EstimatorOptions) => Estimator>;

export type EstimatorName = keyof typeof ESTIMATORS;
export const ESTIMATOR_NAMES = Object.keys(ESTIMATORS) as EstimatorName[];

export interface EstimatorOptions extends GaeOptions, GigpoOptions {}

/** @throws Error listing the estimators, nearest name first. */
export function estimator(name: string, options: EstimatorOptions = {}): Estimator {
  const make = ESTIMATORS[name as EstimatorName];
  if (make === undefined) throw unknownName('advantage estimator', name, ESTIMATOR_NAMES);
  return make(options);
}
