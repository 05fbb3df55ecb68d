import { DEFAULT_SAMPLING, type Generation, type SamplingParams } from '../../src/engines/contracts.ts';
import { Model } from '../../src/engines/onnx/model.ts';
import type { SamplerRequest } from '../../src/engines/onnx/row.ts';
import { OnnxSamplerCore, type SamplerOptions } from '../../src/engines/onnx/sampler.ts';
import { hostOptions } from './engines.ts';

export type Request = Omit<SamplerRequest, 'id' | 'answered' | 'streaming'>;

export function request(seed: number, tokens: readonly number[], params: Partial<SamplingParams> = {}): Request {
  return { tokens: Int32Array.from(tokens), seed, params: { ...DEFAULT_SAMPLING, maxTokens: 10, ...params } };
}

/** Token i says the i-th character from A on. */
export const letters = (token: number) => Buffer.from(String.fromCharCode(65 + token));

/** The embedded sampler without its thread, of a checkpoint directory or a model: the test decides when it steps. */
export function samplerOf(source: string | Model, options: Partial<SamplerOptions> = {}) {
  const model = typeof source === 'string' ? new Model(source) : source;
  const finished = new Map<number, Generation>();
  /** Ids of the requests in the order of their tokens. */
  const sampled: number[] = [];
  const events = {
    token: (id: number) => void sampled.push(id),
    finished: (id: number, generation: Generation) => void finished.set(id, generation),
  };
  const sampler = { ...hostOptions('').sampler, ...options };
  const core = new OnnxSamplerCore(model, sampler, events, () => letters);
  let nextId = 0;
  const submit = (requests: readonly Request[]) => {
    const numbered = requests.map(each => ({ ...each, id: nextId++, streaming: true }));
    core.submit(numbered);
    return numbered.map(({ id }) => id);
  };
  /** Submits and runs until there is nothing to do. */
  const answers = async (requests: readonly Request[]): Promise<Generation[]> => {
    const ids = submit(requests);
    while (core.busy) await core.step();
    return ids.map(id => finished.get(id)!);
  };
  return { core, model, submit, answers, finished, sampled };
}
