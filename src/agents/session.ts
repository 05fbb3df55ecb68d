import type { Generation, SamplingParams } from '../engines/contracts.ts';
import { type Episode, EpisodeRecorder, type Leaves, type Outcome, path } from '../episode/episode.ts';
import {
  boundary,
  boundaryAtOnce,
  EpisodeError,
  type FailureClass,
  isThenable,
  messageOf,
} from '../episode/failure.ts';
import type { SpanAttributes } from '../episode/span.ts';
import type { Image, Message, Task } from '../episode/task.ts';
import type { Renderer } from '../text/renderer.ts';
import { cutAtStop } from '../text/stop-strings.ts';
import type { ToolSchema } from '../text/tool-calls/dialect.ts';
import { checked, checkGeneration } from './checks.ts';
import type { ExecutorContext, Policy } from './contracts.ts';

/** What every execution mode shares: one episode being recorded, its limits, its deadline and its clean-up. */

/** One answer of the policy, as recorded. */
export interface Answer {
  /** Id of the policy segment. */
  readonly segment: number;
  /**
   * Decoded, without the stop token and other special tokens, up to the stop string: what environments and rewards read.
   */
  readonly text: string;
  /** Decoded, without the stop token only: what the chat template shows of it. */
  readonly content: string;
  /** [n] all tokens of the answer as sampled, those that were begun too. */
  readonly tokens: Int32Array;
  readonly generation: Generation;
}

/** Its content is decoded when it is read: only where answers become messages. */
class RecordedAnswer implements Answer {
  readonly segment: number;
  readonly text: string;
  readonly tokens: Int32Array;
  readonly generation: Generation;
  readonly #renderer: Pick<Renderer, 'decode'>;
  readonly #said: Int32Array;

  constructor(answer: Omit<Answer, 'content'>, renderer: Pick<Renderer, 'decode'>, said: Int32Array) {
    this.segment = answer.segment;
    this.text = answer.text;
    this.tokens = answer.tokens;
    this.generation = answer.generation;
    this.#renderer = renderer;
    this.#said = said;
  }

  get content(): string {
    return this.#renderer.decode(this.#said, { special: true });
  }
}

/** The beginning of an answer that was sampled and recorded before. */
export interface Begun {
  /** [n] the last tokens of the context. */
  readonly tokens: Int32Array;
}

export class Session {
  readonly task: Task;
  readonly context: ExecutorContext;
  readonly recorder: EpisodeRecorder;
  /** Aborts when the episode is over or the caller gives up. */
  readonly signal: AbortSignal;
  /** Longest sequence of this episode, in tokens. */
  readonly window: number;
  /** The last score given; undefined leaves it to the sum of rewards. */
  score: number | undefined;
  /** What the leaves of the recorded tree are to each other; parts of one attempt when not given. */
  leaves: Leaves | undefined;
  readonly metrics: Record<string, number> = {};
  readonly #cleanups: { readonly what: string; readonly call: () => unknown }[] = [];
  #ended = false;

  constructor(task: Task, context: ExecutorContext, signal: AbortSignal) {
    this.task = task;
    this.context = context;
    this.signal = signal;
    this.recorder = new EpisodeRecorder({ id: context.id, task, group: context.group, sample: context.sample });
    this.window = Math.min(context.limits.maxTokens, context.policy.contextLength);
  }

  /** Calls someone else's code: under the deadline, and with the class of whose it is on whatever goes wrong. */
  async call<T>(failureClass: FailureClass, what: string, call: () => T | PromiseLike<T>): Promise<T> {
    return await this.callAtOnce(failureClass, what, call);
  }

  /** The same; what the call gives or throws without waiting is given or thrown at once. */
  callAtOnce<T>(failureClass: FailureClass, what: string, call: () => T | PromiseLike<T>): T | Promise<T> {
    const { limits, span } = this.context;
    const run = () =>
      boundaryAtOnce(failureClass, what, call, { signal: this.signal, timeoutMs: limits.callTimeoutMs });
    return span ? span.within(what, callAttributes(failureClass, what), async () => run()) : run();
  }

  /** `call` runs when the episode is over, however it ends; at once if it is over already. */
  onEnd(what: string, call: () => unknown): void {
    this.#cleanups.push({ what, call });
    if (this.#ended) void this.end();
  }

  /** Runs the clean-ups, each under the deadline. One that fails is logged and counted. */
  async end(): Promise<void> {
    const { id, limits, log } = this.context;
    for (let next = this.#cleanups.pop(); next !== undefined; next = this.#cleanups.pop()) {
      const { what, call } = next;
      try {
        await boundary('environment', what, call, { timeoutMs: limits.callTimeoutMs });
      } catch (error) {
        this.addMetrics({ close_failed: 1 });
        log(`episode ${id}: ${messageOf(error)}`);
      }
    }
    this.#ended = true;
  }

  /**
   * Records what the policy is given first. Returns the segment. Text and tokens are fed as they are, messages (and tools)
   * are rendered.
   */
  async open(
    prompt: string | readonly Message[] | Int32Array,
    images?: readonly Image[],
    tools?: readonly ToolSchema[],
  ): Promise<number> {
    const { renderer } = this.context;
    const given = this.callAtOnce('environment', 'prompt', () => {
      const shown = tools === undefined ? undefined : { tools };
      const encoded =
        prompt instanceof Int32Array
          ? prompt
          : typeof prompt === 'string'
            ? renderer.encode(prompt)
            : renderer.prompt(prompt, shown);
      if (encoded.length === 0) throw new Error('it has no tokens, and the policy must be given at least one');
      return encoded;
    });
    const tokens = isThenable(given) ? await given : given;
    if (tokens.length >= this.window) throw this.#overflow(tokens.length);
    return this.recorder.feed(-1, 'prompt', tokens, images);
  }

  /** True if `more` tokens and an answer of at least one fit behind `length` tokens. */
  fits(length: number, more: number): boolean {
    return length + more < this.window;
  }

  /**
   * Lets the policy answer below `parent` and records it. At most `maxTokens`, or what the window leaves. With `begun`
   * it goes on with an answer that ends the context; those tokens count to `maxTokens`.
   */
  async answer(
    parent: number,
    params: Partial<SamplingParams> & { readonly maxTokens: number },
    begun?: Begun,
  ): Promise<Answer> {
    const answer = this.record(parent, await this.sample(parent, params, { begun }), begun);
    const { finishReason, tokens } = answer.generation;
    if (finishReason !== 'abort') return answer;
    throw new EpisodeError('provider', `policy: the answer was aborted after ${tokens.length} tokens`);
  }

  /** What the policy answers below `parent`, not recorded yet. `signal` ends it with what it has, 'abort'. */
  sample(
    parent: number,
    params: Partial<SamplingParams> & { readonly maxTokens: number },
    call: Pick<Parameters<Policy['generate']>[0], 'signal' | 'onToken'> & { readonly begun?: Begun | undefined } = {},
  ): Promise<Generation> {
    const { policy } = this.context;
    const { begun, ...given } = call;
    const tokens = this.recorder.context(parent);
    const images = this.images(parent);
    const before = begun?.tokens.length ?? 0;
    const maxTokens = Math.max(1, Math.min(params.maxTokens - before, this.window - tokens.length));
    const request = {
      tokens,
      ...(images.length > 0 ? { images } : {}),
      ...(before > 0 ? { answered: before } : {}),
      params: { ...params, maxTokens, stopTokens: policy.params.stopTokens },
      ...given,
    };
    // No deadline here: the policy keeps its own, since how long an answer takes depends on the whole batch.
    return boundary('provider', 'policy', () => checked(policy.generate(request), checkGeneration), {
      signal: this.signal,
    });
  }

  /** Records what was sampled below `parent`. */
  record(parent: number, generation: Generation, begun?: Begun): Answer {
    const { renderer, policy } = this.context;
    const { stopTokens } = policy.params;
    const segment = this.recorder.sampled(parent, generation);
    const stopped = generation.finishReason === 'stop' && stopTokens.includes(generation.tokens.at(-1) ?? -1);
    const all = begun === undefined ? generation.tokens : Int32Array.from([...begun.tokens, ...generation.tokens]);
    const said = stopped ? all.subarray(0, -1) : all;
    const text = cutAtStop(renderer.decode(said), generation.stopString, this.context.includeStop ?? false);
    return new RecordedAnswer({ segment, text, tokens: all, generation }, renderer, said);
  }

  /** Images on the path to `segment`, in the order in which the policy was shown them. */
  images(segment: number): Image[] {
    const { segments } = this.recorder;
    return path(segments, segment).flatMap(id => segments[id]!.images ?? []);
  }

  /** Everything on the path to `segment` as text, special tokens included, the last `without` tokens left out. */
  textUpTo(segment: number, without = 0): string {
    const tokens = this.recorder.context(segment);
    return this.context.renderer.decode(tokens.subarray(0, tokens.length - without), { special: true });
  }

  addMetrics(metrics: Readonly<Record<string, number>> | undefined): void {
    for (const [name, value] of Object.entries(metrics ?? {})) this.metrics[name] = (this.metrics[name] ?? 0) + value;
  }

  #overflow(length: number): EpisodeError {
    const { limits, policy } = this.context;
    const limit =
      limits.maxTokens < policy.contextLength
        ? `data.max_len (${limits.maxTokens}); raise it or shorten the prompt`
        : `the model's context of ${policy.contextLength} tokens; shorten the prompt or use a model with a longer one`;
    return new EpisodeError('overflow', `a prompt of ${length} tokens leaves no room for an answer in ${limit}`);
  }
}

/**
 * Records one episode. A failure that has a class becomes the episode's outcome; an abort of `context.signal` rejects
 * with its reason. Whatever the end, the session's signal is aborted first and its clean-ups run after that, each
 * under the deadline; one that fails is logged and counted in the metric `close_failed`.
 */
export async function recordEpisode(
  task: Task,
  context: ExecutorContext,
  play: (session: Session) => Promise<Outcome>,
): Promise<Episode> {
  context.signal.throwIfAborted();
  const controller = new AbortController();
  const forward = () => controller.abort(context.signal.reason);
  context.signal.addEventListener('abort', forward, { once: true });
  const session = new Session(task, context, controller.signal);
  try {
    const outcome = await settle(session, play);
    return session.recorder.finish(outcome, {
      score: session.score,
      metrics: { ...session.metrics },
      leaves: session.leaves,
    });
  } finally {
    context.signal.removeEventListener('abort', forward);
  }

  async function settle(session: Session, play: (session: Session) => Promise<Outcome>): Promise<Outcome> {
    try {
      return await play(session);
    } catch (error) {
      if (context.signal.aborted) throw context.signal.reason;
      if (!(error instanceof EpisodeError)) throw error;
      const { failureClass: failure, message } = error;
      return { kind: 'failed', failure, message, step: session.recorder.steps.length };
    } finally {
      controller.abort(OVER);
      await session.end();
    }
  }
}

/** Made once: ten thousand episodes end for the same reason, and each error takes a trace of where it was made. */
const OVER = new Error('the episode is over');

function callAttributes(failureClass: FailureClass, what: string): SpanAttributes {
  return failureClass === 'tool' ? { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': what } : {};
}
