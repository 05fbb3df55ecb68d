import type { SamplingDType } from '../src/engines/onnx/dtype.ts';
import type { Model } from '../src/engines/onnx/model.ts';
import { benchSampler } from './decode-case.ts';
import type { Limit } from './limits.ts';
import { requests } from './workload.ts';

/** Seconds that the first step after a change of the weights takes longer than the next one. */
export function publishCase(model: Model, dtype: SamplingDType): Limit {
  const sampler = benchSampler(model, { dtype });
  const step = async () => {
    const start = performance.now();
    await sampler.step();
    return (performance.now() - start) / 1000;
  };
  return {
    name: dtype,
    run: async () => {
      sampler.submit(requests(1, 2, 3, model.config.vocabSize));
      // The prompt and the first token.
      await sampler.step();
      sampler.weightsChanged();
      const first = await step();
      const second = await step();
      while (sampler.busy) await sampler.step();
      return first - second;
    },
    close: () => sampler.close(),
  };
}
