import type { Model } from '../src/engines/onnx/model.ts';
import { OnnxSamplerCore, type SamplerOptions } from '../src/engines/onnx/sampler.ts';
import { THREADS } from './harness.ts';
import type { Limit } from './limits.ts';
import { forwardFlops, requests } from './workload.ts';

const ignore = () => undefined;

/** A sampler without a prefix cache: every prompt is computed. */
export function benchSampler(model: Model, options: Partial<SamplerOptions> = {}): OnnxSamplerCore {
  const plain = { threads: THREADS, maxRows: 256, prefillTokens: 4096, prefixCacheBytes: 0 };
  return new OnnxSamplerCore(model, { ...plain, ...options }, { token: ignore, finished: ignore });
}

/** Steps of a measured answer: about half a second of arithmetic at most. */
export function decodeSteps(model: Model, batch: number, prompt: number): number {
  return Math.max(4, Math.min(32, Math.floor(1e11 / forwardFlops(model.config, batch, prompt))));
}

/** Seconds of one decode step, the mean over an answer of so many steps to prompts that are not cached. */
export function decodeCase(
  model: Model,
  { batch, prompt, steps }: { readonly batch: number; readonly prompt: number; readonly steps: number },
  options: Partial<SamplerOptions> = {},
): Limit {
  const sampler = benchSampler(model, options);
  const answers = requests(batch, prompt, steps + 1, model.config.vocabSize);
  return {
    name: `decode ${batch}`,
    run: async () => {
      sampler.submit(answers);
      await sampler.step();
      const start = performance.now();
      while (sampler.busy) await sampler.step();
      return (performance.now() - start) / 1000 / steps;
    },
    close: () => sampler.close(),
  };
}
