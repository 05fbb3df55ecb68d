import { OnnxLearnerCore } from '../src/engines/onnx/learner.ts';
import { record } from '../src/engines/onnx/loss-program.ts';
import { Model } from '../src/engines/onnx/model.ts';
import type { FrozenDType } from '../src/nn/frozen.ts';
import { THREADS } from './harness.ts';
import { type ModelShape, withConfig } from './models.ts';
import { POLICY_GRADIENT, trainingBatch } from './workload.ts';

/** One training job in a process of its own, for its peak memory; see memory.ts. */
export interface MemoryCase {
  readonly shape: ModelShape;
  readonly rows: number;
  readonly length: number;
  /** Rank of an adapter; all weights are trained without it. */
  readonly rank?: number;
  /** What the matrices of its base are kept in. */
  readonly frozen?: FrozenDType;
  readonly learner?: Partial<ConstructorParameters<typeof OnnxLearnerCore>[1]>;
}

export interface MemoryResult {
  /** MB of resident memory at most, and how much of it was there once the weights were drawn. */
  readonly peak: number;
  readonly loaded: number;
  /** Of forward and backward, the shorter of two; and of the update. */
  readonly ms: number;
  readonly updateMs: number;
  /** That are trained. */
  readonly parameters: number;
}

const megabytes = () => process.resourceUsage().maxRSS / 1024;

async function measure({ shape, rows, length, rank, frozen, learner: options }: MemoryCase): Promise<MemoryResult> {
  return withConfig(shape, async directory => {
    const lora =
      rank === undefined ? undefined : { rank, alpha: 16, targetModules: 'all-linear' as const, seed: 0, frozen };
    const model = new Model(directory, 1, undefined, lora);
    const loaded = megabytes();
    const learner = new OnnxLearnerCore(model, {
      threads: THREADS,
      maxTokens: rows * length,
      betas: [0.9, 0.95],
      eps: 1e-8,
      weightDecay: 0,
      maxNorm: 1,
      ...options,
    });
    const batch = trainingBatch(rows, length, shape.vocabulary);
    const program = record(POLICY_GRADIENT);
    let [ms, updateMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let round = 0; round < 3; round++) {
      const start = performance.now();
      await learner.forwardBackward(batch, program);
      const middle = performance.now();
      await learner.optimizerStep(1e-6);
      if (round === 0) continue;
      ms = Math.min(ms, middle - start);
      updateMs = Math.min(updateMs, performance.now() - middle);
    }
    await learner.close();
    return { peak: megabytes(), loaded, ms, updateMs, parameters: model.weights.length };
  });
}

console.log(JSON.stringify(await measure(JSON.parse(process.argv[2]!))));
