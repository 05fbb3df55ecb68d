import type { Generation, SamplingParams } from '../engines/contracts.ts';
import type { Episode } from '../episode/episode.ts';
import type { Span } from '../episode/span.ts';
import type { Image, Task } from '../episode/task.ts';
import type { Renderer } from '../text/renderer.ts';

/** The policy as one episode sees it: seeds, versions and deadlines are already taken care of. */
export interface Policy {
  /** Longest sequence, prompt and answer together, in tokens. */
  readonly contextLength: number;
  /** Sampling parameters of the run; a call may override them. */
  readonly params: SamplingParams;
  generate(request: {
    readonly tokens: Int32Array;
    readonly images?: readonly Image[];
    readonly params?: Partial<SamplingParams>;
    /** So many of the last tokens are an answer that this one continues. */
    readonly answered?: number;
    /** Ends this request alone with what it has, 'abort'. */
    readonly signal?: AbortSignal | undefined;
    /** Receives each token as it is sampled, where the engine gives them one by one. */
    readonly onToken?: ((token: number) => void) | undefined;
  }): Promise<Generation>;
}

/** Limits of one episode. */
export interface EpisodeLimits {
  /** Policy answers per episode, ≥ 1. */
  readonly maxTurns: number;
  /** Tokens per answer, ≥ 1. */
  readonly maxNewTokens: number;
  /** Prompt, answers and feedback together; at most the context length. */
  readonly maxTokens: number;
  /** Deadline of one call to an environment, tool or reward. */
  readonly callTimeoutMs: number;
  /** Deadline of a whole episode whose program is not ours (recorded agents); ten minutes when not given. */
  readonly episodeTimeoutMs?: number | undefined;
}

export interface ExecutorContext {
  /** Identity of the episode to be recorded. */
  readonly id: string;
  readonly group: string;
  readonly sample: number;
  readonly policy: Policy;
  readonly renderer: Renderer;
  readonly limits: EpisodeLimits;
  /** Whether the text of an answer ends with the stop string that ended it, or before it; before when not given. */
  readonly includeStop?: boolean | undefined;
  /** Seeds the environment: the same for every member of the group. 32-bit unsigned. */
  readonly environmentSeed: number;
  readonly signal: AbortSignal;
  /**
   * Runs a wait for something that another episode gives back (a resource of a pool). Where episodes are sampled in
   * rounds, a round that waited for such a wait would never begin.
   */
  readonly aside?: (<T>(wait: () => PromiseLike<T>) => Promise<T>) | undefined;
  readonly log: (message: string) => void;
  /** The episode's span, when the run is traced. */
  readonly span?: Span | undefined;
}

/**
 * Turns a task into a recorded episode. Failures of the episode are outcomes of the episode it returns; it rejects
 * only when `context.signal` aborts.
 */
export interface Executor {
  readonly name: string;
  /** How one attempt is made, where `run` makes several at once: what an evaluation runs. */
  readonly single?: Executor | undefined;
  run(task: Task, context: ExecutorContext): Promise<Episode>;
  /**
   * What a service says of episodes of this executor together, group by group: numbers by name, among the metrics of an
   * evaluation. Asked for once in an evaluation; where it rejects, the evaluation goes on without them.
   */
  summarize?(groups: readonly (readonly Episode[])[], signal: AbortSignal): Promise<Readonly<Record<string, number>>>;
  close?(): Promise<void>;
}
