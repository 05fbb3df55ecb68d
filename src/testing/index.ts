export { BYTE_SPECIAL, byteRenderer } from './byte-tokenizer.ts';
export { type ScriptedSampler, type ScriptedSamplerOptions, scriptedSampler } from './scripted-sampler.ts';
