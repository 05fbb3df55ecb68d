import type { Image, Message, Task } from '../episode/task.ts';

/**
 * What an environment is. One instance serves one episode; every call runs under a deadline and `close` is called on
 * every path. Methods may be synchronous or asynchronous.
 */

export type Awaitable<T> = T | PromiseLike<T>;

export interface EnvironmentContext {
  /** The same for every member of a group, so that a baseline compares attempts at one puzzle. 32-bit unsigned. */
  readonly seed: number;
  /** Aborts when the episode is over or its deadline has passed. */
  readonly signal: AbortSignal;
}

export interface Reset {
  /** What the policy sees first. Text is fed as it is; messages are rendered by the chat template (the safer default). */
  readonly observation: string | readonly Message[];
  readonly images?: readonly Image[];
  readonly stateKey?: string;
  /**
   * The end of the observation (of its last message) that tells the state as it is now, a board say: where several
   * observations are shown together, that of the last one alone is.
   */
  readonly suffix?: string;
}

export interface Action {
  /** Decoded answer of the policy, without its stop token. */
  readonly actionText: string;
  /** The tokens exactly as sampled. */
  readonly actionTokens: Int32Array;
  /** Everything the policy saw before it answered, decoded. */
  readonly observationText: string;
  readonly label: string;
  readonly task: Task;
  /** 0 for the first action of the episode. */
  readonly turn: number;
  /** 'length' when the answer was cut by the turn's token limit. */
  readonly finishReason: 'stop' | 'length' | 'abort';
  readonly signal: AbortSignal;
}

export interface StepResult {
  /** Reward of this step; finite. */
  readonly reward: number;
  /** Episode score so far, used for filtering; defaults to the sum of rewards. The last one given counts. */
  readonly score?: number;
  /** Appended to what the policy sees: text as it is, messages through the chat template. Not needed when done. */
  readonly feedback?: string | readonly Message[];
  readonly done: boolean;
  /** Overrides for the turns that follow. */
  readonly samplingParams?: {
    readonly temperature?: number;
    readonly topP?: number;
    readonly topK?: number;
    readonly minP?: number;
    readonly maxTokens?: number;
    readonly stopStrings?: readonly string[];
  };
  readonly images?: readonly Image[];
  /** Identifies the state the feedback leads to. */
  readonly stateKey?: string;
  /** The end of the feedback that tells the state as it is now; see `Reset`. */
  readonly suffix?: string;
  /** What was read of the answer: later turns see this of it, where they see it as text that is written anew. */
  readonly parsedAction?: string;
  /** The answer neither called a tool nor answered the task: filters of void turns go by this. */
  readonly isVoid?: boolean;
  /** The answer called a tool and the call failed: filters of failed tool calls go by this. */
  readonly toolFailed?: boolean;
  readonly metrics?: Readonly<Record<string, number>>;
}

export interface Environment {
  reset(task: Task, context: EnvironmentContext): Awaitable<Reset>;
  step(action: Action): Awaitable<StepResult>;
  /** An independent copy in the same state, for a search; without it the same actions are taken again in a new one. */
  fork?(): Awaitable<Environment>;
  close?(): Awaitable<void>;
}

/** Makes the environment of one episode. */
export type EnvironmentFactory = () => Awaitable<Environment>;

/**
 * A scripted player: begins an episode, and then says the answer to what it sees. It is told the task, with its label,
 * and the seed, so that it can know what the environment hides; draws of its own come from the seed too.
 */
export type Player = (episode: {
  readonly task: Task;
  readonly seed: number;
}) => (seen: Reset['observation'], turn: number) => Awaitable<string>;

/** What the seats of a game are told. Text is fed as it is; messages are rendered by the chat template. */
export type Told = Readonly<Record<string, string | readonly Message[]>>;

/** Several seats that take turns on one environment: players, an agent and a simulated user. One instance an episode. */
export interface Game {
  reset(
    task: Task,
    context: EnvironmentContext,
  ): Awaitable<{
    /** What each seat sees first. */
    readonly observations: Told;
    /** Whose turn it is. */
    readonly next: string;
  }>;
  step(action: Action & { readonly seat: string }): Awaitable<{
    /** What each seat has earned now; 0 for seats that are not named. It goes to the last turn that the seat took. */
    readonly rewards?: Readonly<Record<string, number>>;
    /** What each seat is told before its next turn. */
    readonly feedback?: Told;
    readonly done: boolean;
    /** Whose turn it is; needed unless done. */
    readonly next?: string;
    /** Episode score, used for filtering; defaults to what the trained seats have earned together. */
    readonly score?: number;
    readonly metrics?: Readonly<Record<string, number>>;
  }>;
  close?(): Awaitable<void>;
}
