export { type CodeRewardOptions, codeReward } from './code.ts';
export { perSample, type RewardFunction, type RewardInput, type RewardOutput } from './contracts.ts';
export { exactMatch } from './exact-match.ts';
export { loadRewardFile } from './file/load.ts';
export { finalNumber } from './final-number.ts';
export { type JudgeOptions, judgeReward } from './judge/judge.ts';
export {
  EXTRACTIONS,
  type Extraction,
  extractAnswer,
  type MathReward,
  type MathRewardOptions,
  type MathVerdict,
  mathReward,
  type VerifyOptions,
  verifyMath,
} from './math/index.ts';
export { type MixturePart, mixedReward } from './mixture.ts';
