export { BYTE_SPECIAL, byteRenderer } from './byte-tokenizer.ts';
export { type TestContext, type TestContextOptions, testContext } from './executor-context.ts';
export { type ScriptedSampler, type ScriptedSamplerOptions, scriptedSampler } from './scripted-sampler.ts';
