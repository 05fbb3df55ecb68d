export { type BigramPolicy, type BigramPolicyOptions, bigramPolicy } from './bigram-policy.ts';
export { BYTE_SPECIAL, byteRenderer } from './byte-tokenizer.ts';
export { type Check, type EnvironmentSuiteOptions, environmentSuite } from './environment-suite.ts';
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
