import type { StepResult } from '../envs/contracts.ts';
import { EpisodeError, isThenable } from '../episode/failure.ts';
import type { Image, Message } from '../episode/task.ts';
import type { ToolSchema } from '../text/tool-calls/dialect.ts';
import type { Answer, Session } from './session.ts';

/** The conversation as messages, for as long as it is one: text feedback goes to the policy as it is. */
export class Transcript {
  readonly #session: Session;
  readonly #tools: readonly ToolSchema[] | undefined;
  #messages: readonly Message[] | undefined;

  readonly #keep: ((content: string) => string) | undefined;

  /** `tools` are shown by the chat template; `keep` says what of an answer later turns see, all of it when not given. */
  constructor(
    session: Session,
    observation: string | readonly Message[],
    tools?: readonly ToolSchema[],
    keep?: (content: string) => string,
  ) {
    this.#session = session;
    this.#tools = tools;
    this.#keep = keep;
    this.#messages = typeof observation === 'string' ? undefined : observation;
  }

  /** One that goes on from here, independent of this one. */
  clone(): Transcript {
    return new Transcript(this.#session, this.#messages ?? '', this.#tools, this.#keep);
  }

  /**
   * Records what the policy is told after `answer`. Returns the segment to answer below; undefined when an answer no
   * longer fits the window behind it.
   */
  async tell(
    answer: Answer,
    feedback: string | readonly Message[],
    images: readonly Image[] = [],
    _result?: Pick<StepResult, 'suffix' | 'parsedAction'>,
  ): Promise<number | undefined> {
    const { recorder } = this.#session;
    const told = this.#delta(answer, feedback);
    const delta = isThenable(told) ? await told : told;
    const seen = delta.kind === 'branch' ? 0 : recorder.contextLength(answer.segment);
    if (!this.#session.fits(seen, delta.tokens.length)) return undefined;
    if (delta.kind === 'append') {
      return recorder.feed(answer.segment, 'environment', delta.tokens, images.length > 0 ? images : undefined);
    }
    if (this.#session.leaves === 'alternatives') {
      throw new EpisodeError(
        'recorder',
        `a path of a search must be one conversation, and ${delta.reason}; use a template that keeps what was said, or text feedback`,
      );
    }
    // The whole context is fed anew, so every image shown so far is part of this prompt.
    const shown = [...this.#session.images(answer.segment), ...images];
    return recorder.feed(-1, 'prompt', delta.tokens, shown.length > 0 ? shown : undefined);
  }

  #delta(answer: Answer, feedback: string | readonly Message[]) {
    const { renderer } = this.#session.context;
    return this.#session.callAtOnce('environment', 'feedback', () => {
      if (typeof feedback === 'string') {
        this.#messages = undefined;
        return { kind: 'append', tokens: renderer.encode(feedback) } as const;
      }
      const earlier = this.#messages;
      if (earlier === undefined) {
        throw new Error('messages cannot follow text: give the observation and all feedback as messages, or as text');
      }
      const content = this.#keep?.(answer.content) ?? answer.content;
      const said: Message = { role: 'assistant', content };
      this.#messages = [...earlier, said, ...feedback];
      const context = this.#session.recorder.context(answer.segment);
      const tools = this.#tools;
      if (content !== answer.content) {
        const tokens = renderer.prompt(this.#messages, tools ? { tools } : undefined);
        return { kind: 'branch', tokens, reason: 'the history keeps a part of each answer' } as const;
      }
      return renderer.extend({ context, earlier, answer: said, added: feedback, ...(tools ? { tools } : {}) });
    });
  }
}
