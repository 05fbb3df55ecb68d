export { EXTRACTIONS, type Extraction, extractAnswer } from './extract.ts';
export { type MathReward, type MathRewardOptions, mathReward } from './reward.ts';
export { type MathVerdict, type VerifyOptions, verifyMath } from './verify.ts';
