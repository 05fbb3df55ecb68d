export type { AdvantageInput, AdvantageOutput, CreditOptions, Estimator } from './advantages/contract.ts';
export { ESTIMATOR_NAMES, type EstimatorName, type EstimatorOptions, estimator } from './advantages/index.ts';
export type { Whitening } from './advantages/whiten.ts';
export { type Aggregation, aggregate, tokenMean, type Weights } from './aggregate.ts';
export {
  type Algorithm,
  type AlgorithmParts,
  behaviourLogprobs,
  checkGroupSize,
  computeAdvantages,
  createAlgorithm,
  type KlTerm,
  type LossInputs,
  lossInputs,
  type StepData,
} from './algorithm.ts';
export { CORRECTIONS, type Correction, type CorrectionType, correct, mismatch } from './corrections.ts';
export { type Curated, type Curation, curate, FILTER_EFFECTS, type FilterEffect } from './curation.ts';
export * from './filters.ts';
export { KL_ESTIMATORS, type KlController, type KlEstimator, klController, klPenalty } from './kl.ts';
export { type ObjectiveOptions, objective, POLICY_LOSSES, type PolicyLossType } from './losses/index.ts';
export { likelihoodLoss } from './losses/likelihood.ts';
export { PAIRWISE_TYPES, type PairwiseType, pairwiseLoss } from './losses/pairwise.ts';
export { type PolicyLossOptions, type PolicyObjective, type PolicyTokens, policyLoss } from './losses/policy.ts';
export { type PreferenceOptions, preferenceLoss } from './losses/preference.ts';
export { explainedVariance, valueLoss } from './losses/value.ts';
export { evaluate, type NumericContext, type NumericResult } from './numeric.ts';
export type { Loss, LossContext, Ops } from './ops.ts';
export { pairwiseInputs, preferenceInputs } from './pair-inputs.ts';
export {
  overlongPenalty,
  type Penalty,
  REWARD_SPLITS,
  type RewardSplit,
  splitReward,
  stopProperly,
} from './penalties.ts';
export {
  cispo,
  drGrpo,
  gigpo,
  grpo,
  gspo,
  ppo,
  type RecipeOptions,
  reinforceBaseline,
  reinforcePlusPlus,
  rloo,
} from './recipes.ts';
export type { Time } from './returns.ts';
