import { EpisodeError } from '../episode/failure.ts';
import type { Image, Message } from '../episode/task.ts';
import { splitReasoning, type ToolDialect, type ToolSchema } from '../text/tool-calls/dialect.ts';
import { react } from '../text/tool-calls/react.ts';
import type { Answer, Session } from './session.ts';
import { Transcript } from './transcript.ts';

export interface FoldOptions {
  /** Fold after so many answers since the last time. At least one of this, `tokens` and `tool` is given. */
  readonly turns?: number | undefined;
  /** Fold when so many tokens would be in the context. */
  readonly tokens?: number | undefined;
  /** The policy may fold by itself, by a tool `summarize` that is offered beside the others: of tool agents only. */
  readonly tool?: boolean | undefined;
  /** How the policy is asked for a summary, as a user. */
  readonly request?: string | undefined;
}

const REQUEST =
  'Summarize what has been done and learned so far, and what is still to do. Only this summary will be kept.';

/** How a conversation goes on: what is folded, and what of an answer stays in the history. */
export interface HistoryOptions {
  readonly fold?: FoldOptions | undefined;
  /**
   * What later turns see of an answer, from its text with special tokens: `withoutReasoning` or `onlyCalls`, say. Where
   * that is less than all of it each turn is a root segment of its own, trained in the context that it was sampled in.
   * All of it when not given.
   */
  readonly keep?: ((content: string, dialect: ToolDialect) => string) | undefined;
}

/** The transcript that the options ask for; `dialect` is that of calls, the checkpoint's when not given. */
export function transcriptOf(
  session: Session,
  beginning: string | readonly Message[],
  { fold, keep: keepOf }: HistoryOptions,
  { tools, dialect }: { readonly tools?: readonly ToolSchema[] | undefined; readonly dialect?: ToolDialect } = {},
): Transcript {
  const keep = keeper(session, keepOf, dialect);
  return fold === undefined
    ? new Transcript(session, beginning, tools, keep)
    : new FoldingTranscript(session, beginning, fold, tools, keep);
}

/** What later turns see of an answer; `dialect` is the checkpoint's when not given. */
export function keeper(
  { context }: Session,
  keep: HistoryOptions['keep'],
  dialect: ToolDialect = context.renderer.toolDialect ?? react,
): ((content: string) => string) | undefined {
  return keep && (content => keep(content, dialect));
}

/**
 * Context folding: the policy is asked for a summary, or gives one by itself, and goes on in a new root segment with what it was given first
 * and the latest summary. The summary is a step that earns nothing by itself; the leaves are parts of one attempt, so
 * what comes later credits it. It is asked for only behind a turn with the environment or with tools, so an episode
 * cannot consist of summaries.
 */
export class FoldingTranscript extends Transcript {
  readonly #session: Session;
  readonly #fold: FoldOptions;
  readonly #beginning: readonly Message[];
  readonly #tools: readonly ToolSchema[] | undefined;
  readonly #keep: ((content: string) => string) | undefined;
  #now: Transcript;
  #turns = 0;

  constructor(
    session: Session,
    beginning: string | readonly Message[],
    fold: FoldOptions,
    tools: readonly ToolSchema[] | undefined,
    keep: ((content: string) => string) | undefined,
  ) {
    if (typeof beginning === 'string') {
      throw new EpisodeError(
        'environment',
        'folding needs a conversation of messages: give the observation and all feedback as messages',
      );
    }
    super(session, beginning, tools, keep);
    this.#session = session;
    this.#fold = fold;
    this.#beginning = beginning;
    this.#tools = tools;
    this.#keep = keep;
    this.#now = new Transcript(session, beginning, tools, keep);
  }

  override async tell(
    answer: Answer,
    feedback: string | readonly Message[],
    images: readonly Image[] = [],
  ): Promise<number | undefined> {
    const session = this.#session;
    const { turns = Infinity, tokens = Infinity, request = REQUEST } = this.#fold;
    this.#turns += 1;
    const isDue = this.#turns >= turns || session.recorder.contextLength(answer.segment) >= tokens;
    if (!isDue || typeof feedback === 'string') return this.#now.tell(answer, feedback, images);
    const asked = await this.#now.tell(answer, [...feedback, { role: 'user', content: request }], images);
    if (asked === undefined) return undefined;
    const summary = await session.answer(asked, { maxTokens: session.context.limits.maxNewTokens });
    session.recorder.step({ segment: summary.segment, reward: 0, finishReason: summary.generation.finishReason });
    return this.fold(summary.text);
  }

  /** Goes on with the beginning and `summary`. Returns the segment to answer below; undefined when they do not fit. */
  fold(summary: string): number | undefined {
    const session = this.#session;
    session.addMetrics({ folds: 1 });
    const kept = [...this.#beginning, { role: 'user', content: `Summary of what happened so far:\n${summary}` }];
    const { renderer } = session.context;
    const prompt = renderer.prompt(kept, this.#tools === undefined ? undefined : { tools: this.#tools });
    if (!session.fits(0, prompt.length)) return undefined;
    this.#turns = 0;
    this.#now = new Transcript(session, kept, this.#tools, this.#keep);
    const shown = session.images(0);
    return session.recorder.feed(-1, 'prompt', prompt, shown.length > 0 ? shown : undefined);
  }
}

/** An answer without what was thought before it. */
export function withoutReasoning(content: string): string {
  return splitReasoning(content).rest.trimStart();
}

/**
 * The calls of an answer as they were written, so that a history has calls and observations only; an answer without a
 * call without what was thought before it.
 */
export function onlyCalls(content: string, dialect: ToolDialect): string {
  const { written } = dialect.parse(content);
  return written === '' ? withoutReasoning(content) : written;
}

/** @throws RangeError for options that never fold, or before the first answer */
export function checkFold({ turns, tokens, tool, request }: FoldOptions): void {
  const isAsked = turns !== undefined || tokens !== undefined;
  if (!isAsked && !tool) throw new RangeError('folding needs a number of turns or of tokens, or the tool');
  if (!isAsked && request !== undefined)
    throw new RangeError(
      'folding: the policy is asked for a summary after a number of turns or tokens only; leave out the request',
    );
  for (const [name, value] of Object.entries({ turns, tokens })) {
    if (value !== undefined && !(value >= 1)) throw new RangeError(`folding: ${name} is ${value}; expected 1 or more`);
  }
}
