import type { z } from 'zod';
import type { Awaitable } from '../../envs/contracts.ts';
import type { Task } from '../../episode/task.ts';
import type { Renderer } from '../../text/renderer.ts';

/**
 * AReaL's agent interface: the agent puts the tokens that it conditions on on a queue of observations, and takes what
 * was generated from a queue of actions. Fields of data have their snake_case names, too.
 * Source: https://github.com/inclusionAI/AReaL/blob/v0.3.0/realhf/api/core/agent_api.py
 */

/** A bounded queue. Both calls wait: `put` for room, `get` for something to be there. */
export interface PutQueue<T> {
  put(item: T): Promise<void>;
}
export interface GetQueue<T> {
  get(): Promise<T>;
}

/** How one request is sampled; what is not given is as in the run. snake_case names are understood. */
export interface GenerationConfig {
  /** Samples of the same context; 1 when not given. */
  readonly n?: number;
  readonly maxNewTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  /** The most probable token each time. */
  readonly greedy?: boolean;
  readonly stop?: readonly string[];
  readonly max_new_tokens?: number;
  readonly top_p?: number;
  readonly top_k?: number;
}

export type Qid = string | number;

/** An observation: exactly the token ids that the policy is to be conditioned on. */
export type QueueRequest = readonly [qid: Qid, promptTokenIds: ArrayLike<number>, config?: GenerationConfig];

/** n samples of one request. All arrays are per sample but `promptIds`. */
export interface BundledGenerationOutputs {
  readonly qid: Qid;
  readonly promptIds: readonly number[];
  /** Without the prompt. */
  readonly outputIds: readonly (readonly number[])[];
  /** Prompt and output. */
  readonly seqs: readonly (readonly number[])[];
  /** One shorter than the sequence (of the next token); 0 at positions of the prompt. */
  readonly logprobs: readonly (readonly number[])[];
  /** Cut by its length. */
  readonly noEos: readonly boolean[];
  /** Versions of the weights that sampled the first and the last token. */
  readonly versionStart: readonly number[];
  readonly versionEnd: readonly number[];
  /** Lengths of `seqs`, and of the prompt. */
  readonly seqlens: readonly number[];
  readonly promptLen: number;
  readonly prompt_ids: readonly number[];
  readonly output_ids: readonly (readonly number[])[];
  readonly no_eos: readonly boolean[];
  readonly version_start: readonly number[];
  readonly version_end: readonly number[];
  readonly prompt_len: number;
}

/** A Gym-like environment, asynchronous. One instance serves one episode. */
export interface EnvironmentService<Action = never, Observation = unknown, Reward = unknown> {
  reset(options?: {
    readonly seed?: number;
    readonly options?: Readonly<Record<string, unknown>>;
  }): Awaitable<readonly [observation: Observation, info: Readonly<Record<string, unknown>>]>;
  step(
    action: Action,
  ): Awaitable<
    readonly [
      observation: Observation,
      reward: Reward,
      terminated: boolean,
      truncated: boolean,
      info: Readonly<Record<string, unknown>>,
    ]
  >;
  close?(): Awaitable<void>;
}

export interface QueuePrompt {
  readonly qid: string;
  /** The task's prompt, rendered. */
  readonly promptIds: readonly number[];
  readonly prompt_ids: readonly number[];
  readonly task: Task;
}

/** What an agent returns for each sequence that is to be trained on. */
export interface CollectedSequence {
  /** A sequence that a request gave (`seqs`), or any that ends with an answer of the policy. */
  readonly sequence: ArrayLike<number>;
  /** What its last answer earned. The turns before it are part of the sequence, and earn what they were returned with. */
  readonly reward: number;
  readonly metrics?: Readonly<Record<string, number>>;
}

export interface CollectContext {
  readonly renderer: Renderer;
  /** The same for every member of the group. 32-bit unsigned. */
  readonly seed: number;
  /** Aborts when the episode is over. */
  readonly signal: AbortSignal;
}

/** An empty list rejects the episode: it is counted and never trained on. */
export interface QueueAgent<Environment = EnvironmentService> {
  collectTrajectory(
    prompt: QueuePrompt,
    env: Environment,
    obsQueue: PutQueue<QueueRequest>,
    actQueue: GetQueue<BundledGenerationOutputs>,
    context: CollectContext,
  ): Promise<readonly CollectedSequence[]>;
}

/**
 * A class that can be registered; `args` declares what its constructor takes: a schema, or the defaults, whose types
 * are then those that are accepted. Without it it takes nothing.
 */
export interface Registrable<T> {
  new (args: never): T;
  readonly args?: z.ZodObject | Readonly<Record<string, string | number | boolean>>;
}
