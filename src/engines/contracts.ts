import type { Loss } from '../algorithms/ops.ts';
import type { FinishReason } from '../episode/episode.ts';
import type { Image } from '../episode/task.ts';
import type { Renderer } from '../text/renderer.ts';
import type { SamplingParams } from './sampling.ts';

/**
 * What a policy engine offers. A Sampler serves the policy, a Learner updates it; they are separate because some
 * engines can only sample. Token ids go in and come out; no engine sees text or knows an algorithm by name.
 */

export { DEFAULT_SAMPLING, type SamplingParams } from './sampling.ts';

export interface GenerateRequest {
  /** [n] everything the policy sees; n ≥ 1. */
  readonly tokens: Int32Array;
  readonly images?: readonly Image[];
  readonly params: SamplingParams;
  /** Seeds this request's own random stream: the same seed and distribution give the same tokens. 32-bit unsigned. */
  readonly seed: number;
  /** Orders requests that arrive together; a deterministic schedule depends on it and not on arrival. */
  readonly key: string;
  readonly signal?: AbortSignal | undefined;
  /** So many of the last tokens are an answer that this one continues: a stop string may have begun in them. */
  readonly answered?: number | undefined;
  /** Receives each token as it is sampled. */
  readonly onToken?: (token: number) => void;
}

export interface Generation {
  /** [n] sampled ids, the stop token included. */
  readonly tokens: Int32Array;
  /** [n] log-probabilities under the distribution really sampled from (after temperature, top-p, top-k, min-p). */
  readonly logprobs: Float32Array;
  /** [n] policy version of each token. */
  readonly versions: Int32Array;
  readonly finishReason: FinishReason;
  /** The stop string that ended it: completed by the last token, which may say more. */
  readonly stopString?: string | undefined;
  /** [n] for each token, where the request asked for them. */
  readonly topLogprobs?: readonly TopLogprobs[] | undefined;
}

/**
 * The most probable tokens of the distribution that one token was drawn from, best first, ties by the lower id. Tokens
 * that truncation leaves no probability are not among them.
 */
export interface TopLogprobs {
  readonly tokens: Int32Array;
  readonly logprobs: Float32Array;
}

/** Counters that only grow. */
export interface SamplerStatistics {
  /** Tokens of the prompts of all requests. */
  readonly promptTokens: number;
  /** Those of them whose keys and values were there already: of an earlier turn, or of a request with the same prompt. */
  readonly cachedTokens: number;
  /** Sequences that left the prefix cache because its memory was needed. */
  readonly evictions: number;
}

export interface Sampler {
  /** Longest sequence, prompt and answer together, in tokens. */
  readonly contextLength: number;
  /** Number of weight updates the served policy has had. */
  readonly version: number;
  /** Many calls may be in flight. Rejects on invalid input; an aborted request resolves with what it has, 'abort'. */
  generate(request: GenerateRequest): Promise<Generation>;
  /** Serves the learner's present weights from now on. */
  publish(learner: Learner): Promise<void>;
  /** Stops between two decode steps. 'keep' leaves requests in flight, 'abort' ends them with what they have. */
  pause(options: { mode: 'keep' | 'abort' }): Promise<void>;
  resume(): Promise<void>;
  /** Frees what can be rebuilt (caches). `wake` makes the sampler usable again. */
  sleep(): Promise<void>;
  wake(): Promise<void>;
  /** Absent where the engine does not tell. */
  statistics?(): Promise<SamplerStatistics>;
  close(): Promise<void>;
}

/** One sequence for the learner: `predict[t]` is 1 where the log-probability of token t is wanted (t ≥ 1). */
export interface LearnerSequence {
  /** [T] */
  readonly tokens: Int32Array;
  /** [T] 0 or 1; `predict[0]` is 0. The predicted positions, in order, are the sequence's P places. */
  readonly predict: Uint8Array;
  readonly images?: readonly Image[];
}

export interface LearnerBatch {
  readonly sequences: readonly LearnerSequence[];
  /** Logits are divided by it before the softmax, as when sampling. > 0. */
  readonly temperature: number;
}

/** What a loss needs beside the log-probabilities: for each sequence one value per predicted position, by name. */
export interface LossBatch extends LearnerBatch {
  /** name → per sequence [P] */
  readonly inputs: Readonly<Record<string, readonly Float32Array[]>>;
  /**
   * So many neighbours are compared with each other (2 for pairs): they are never torn apart into different calls, and
   * `sequenceSum` adds over all of them. 1 when not given; it divides the number of sequences.
   */
  readonly together?: number | undefined;
}

export interface ForwardResult {
  /** Per sequence [P]: log-probability of each predicted token. */
  readonly logprobs: Float32Array[];
  /** Per sequence [P]: entropy of the distribution at each predicted position, in nats. */
  readonly entropy: Float32Array[];
}

export interface OptimizerStepResult {
  /** Global L2 norm before clipping. */
  readonly gradNorm: number;
  readonly lr: number;
}

/** An exponential moving average of the trained weights. It begins as the weights that training started from. */
export interface WeightAverage {
  /** average ← beta · average + (1 − beta) · policy, beta in [0, 1). */
  update(options: { beta: number }): Promise<void>;
  /**
   * Exchanges the policy's weights and the average; a second call takes it back. Between the two what is published,
   * computed and exported is the average, and nothing must be trained or saved.
   */
  swap(): Promise<void>;
}

export interface Learner {
  readonly contextLength: number;
  /** Number of optimizer updates so far. */
  readonly version: number;
  /** `weights: 'reference'` evaluates the reference: the initial policy, until `updateReference` moves it. */
  forward(batch: LearnerBatch, options?: { weights?: 'policy' | 'reference' }): Promise<ForwardResult>;
  /**
   * Adds the gradient of the loss to the accumulated gradient and returns the loss and its metrics, each summed over
   * the batch. Losses are sums over positions, so any split of a batch into calls accumulates the same gradient.
   */
  forwardBackward(batch: LossBatch, loss: Loss): Promise<Record<string, number>>;
  /** Clips, applies and clears the accumulated gradient. A gradient that is not finite is refused and cleared. */
  optimizerStep(options: { lr: number }): Promise<OptimizerStepResult>;
  /** Forgets the accumulated gradient. */
  zeroGrad(): Promise<void>;
  /** reference ← beta · reference + (1 − beta) · policy, beta in [0, 1]; 0 copies the policy. */
  updateReference(options: { beta: number }): Promise<void>;
  /** Absent where the engine keeps none. It costs one more copy of the trained weights once it is used. */
  readonly average?: WeightAverage | undefined;
  /** Writes / reads everything that training needs to continue exactly (weights, optimizer, version, reference, average). */
  save(directory: string): Promise<void>;
  load(directory: string): Promise<void>;
  /** Writes a Hugging Face checkpoint directory. */
  export(directory: string): Promise<void>;
  /**
   * Puts away what only an update needs (gradients, optimizer state) until it is needed again, and says how many bytes
   * of memory that gave back. Absent where there is nothing to gain. Rejects while a gradient waits for its update.
   */
  offload?(): Promise<number>;
  close(): Promise<void>;
}

/** A value model: a learner that predicts the return instead of the next token. */
export interface Critic
  extends Pick<
    Learner,
    | 'contextLength'
    | 'version'
    | 'forwardBackward'
    | 'optimizerStep'
    | 'zeroGrad'
    | 'save'
    | 'load'
    | 'export'
    | 'close'
  > {
  /** Per sequence [P]: value of the state in which each predicted token was sampled. The temperature has no effect. */
  values(batch: LearnerBatch): Promise<Float32Array[]>;
}

/** A policy that can be trained: what an engine's factory returns. */
export interface PolicyEngine {
  /** Sampler and learner share one set of weights and one thread: they can only take turns. */
  readonly colocated?: boolean;
  readonly sampler: Sampler;
  readonly learner: Learner;
  /** Text to tokens and back for the policy's checkpoint. */
  readonly renderer: Renderer;
  close(): Promise<void>;
}
