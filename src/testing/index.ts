export { type BigramPolicy, type BigramPolicyOptions, bigramPolicy } from './bigram-policy.ts';
export { BYTE_SPECIAL, byteRenderer } from './byte-tokenizer.ts';
export { type Check, type CheckReport, type Declare, declareChecks, runChecks } from './check.ts';
export { playerScores } from './environment-episode.ts';
export { type EnvironmentSuiteOptions, environmentSuite } from './environment-suite.ts';
export { type LearnerFeature, type LearnerSuiteOptions, learnerSuite } from './learner-suite.ts';
export {
  type SamplerFeature,
  type SamplerSubject,
  type SamplerSuiteOptions,
  samplerSuite,
} from './sampler-suite.ts';
export {
  type LearnerCall,
  type ScriptedLearner,
  type ScriptedLearnerOptions,
  scriptedLearner,
} from './scripted-learner.ts';
export {
  type ScriptedSampler,
  type ScriptedSamplerOptions,
  type ScriptedToken,
  scriptedSampler,
} from './scripted-sampler.ts';
export { tableCritic } from './table-critic.ts';
export { type TrackerFeature, type TrackerPlace, type TrackerSuiteOptions, trackerSuite } from './tracker-suite.ts';
