import type {
  ForwardResult,
  Generation,
  LearnerBatch,
  LossBatch,
  OptimizerStepResult,
  SamplerStatistics,
} from '../contracts.ts';
import type { LearnerOptions } from './learner.ts';
import type { LossProgram } from './loss-program.ts';
import type { LoraStart } from './model.ts';
import type { SamplerRequest } from './row.ts';
import type { SamplerOptions } from './sampler.ts';

/** Messages between the main thread and the engine's thread. */

export interface HostOptions {
  readonly model: string;
  readonly initSeed?: number;
  /** `score`: a value model instead of a policy. */
  readonly head?: 'score';
  /** Trains an adapter instead of all weights. */
  readonly lora?: LoraStart;
  /** Of the weights that `export` writes; float32 when not given. */
  readonly saveDtype?: 'float32' | 'bfloat16' | undefined;
  readonly sampler: SamplerOptions;
  readonly learner: LearnerOptions;
}

/** What the main thread learns about the model once it is loaded. */
export interface HostInfo {
  readonly contextLength: number;
  readonly vocabularySize: number;
  readonly parameters: number;
}

/** Calls that have one answer. They are carried out one after another, in the order in which they were made. */
export interface HostCalls {
  forward(batch: LearnerBatch, weights: 'policy' | 'reference'): Promise<ForwardResult>;
  values(batch: LearnerBatch): Promise<Float32Array[]>;
  forwardBackward(batch: LossBatch, program: LossProgram): Promise<Record<string, number>>;
  optimizerStep(lr: number): Promise<OptimizerStepResult>;
  zeroGrad(): void;
  updateReference(beta: number): void;
  updateAverage(beta: number): void;
  swapAverage(): void;
  gradient(): Record<string, Float32Array>;
  save(directory: string): Promise<void>;
  load(directory: string): Promise<{ version: number }>;
  export(directory: string): Promise<void>;
  /** All trained weights in the layout's order: a copy. */
  weights(): Float32Array;
  setWeights(weights: Float32Array, version: number): void;
  pause(mode: 'keep' | 'abort'): void;
  resume(): void;
  sleep(): void;
  /** Bytes of memory given back. */
  offload(): number;
  statistics(): SamplerStatistics;
  close(): Promise<void>;
}

export type ToHost =
  | { readonly type: 'call'; readonly id: number; readonly method: keyof HostCalls; readonly args: readonly unknown[] }
  | { readonly type: 'submit'; readonly requests: readonly SamplerRequest[] }
  | { readonly type: 'abort'; readonly id: number };

export type FromHost =
  | { readonly type: 'ready'; readonly info: HostInfo }
  | { readonly type: 'refused'; readonly error: Error }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: Error }
  /** Everything that one decode step produced. */
  | {
      readonly type: 'sampled';
      readonly tokens: readonly (readonly [id: number, token: number])[];
      readonly finished: readonly (readonly [id: number, generation: Generation])[];
    }
  /** The sampler broke; the requests it had end with the error. */
  | { readonly type: 'failed'; readonly ids: readonly number[]; readonly error: Error };
