import type { Reset, StepResult } from '../envs/contracts.ts';
import { preview } from '../episode/explain.ts';
import type { Image, Message } from '../episode/task.ts';
import type { Answer, Session } from './session.ts';
import { Transcript } from './transcript.ts';

/** What the policy sees on its turn, written anew each turn; names and texts are those of GEM's observation wrappers. */
export const OBSERVATION_MODES = [
  'last',
  'concat',
  'concat_with_action',
  'concat_chat',
  'concat_chat_on_reset',
] as const;

export interface ObservationOptions {
  /**
   * `last`: the last observation (GEM without a wrapper, its suffix included). `concat`: all observations, each on lines
   * of its own. `concat_with_action`: observations and answers by turns. `concat_chat`: the same as a conversation for
   * the chat template. `concat_chat_on_reset`: the first observation through the chat template, the rest as text.
   *
   * Text observations are fed as GEM writes them. Where the environment speaks messages, what the first three modes
   * write is the message of one user behind the system message that the environment began with.
   */
  readonly mode: (typeof OBSERVATION_MODES)[number];
  /** Shows the last so many answers and one observation more; all of them when not given. Not for `last`. */
  readonly maxHistory?: number | undefined;
}

/** @throws RangeError for a history that no mode has */
export function checkObservations({ mode, maxHistory }: ObservationOptions): void {
  if (maxHistory === undefined) return;
  if (mode === 'last') throw new RangeError('observations: last shows one observation; leave out the longest history');
  if (!(Number.isInteger(maxHistory) && maxHistory >= 1))
    throw new RangeError(`observations: the longest history is ${maxHistory}; expected a whole number of 1 or more`);
}

/** An observation without its suffix, and what was said to it: nothing yet to the newest. */
interface Seen {
  readonly content: string | readonly Message[];
  readonly suffix: string;
  readonly images: readonly Image[];
  action?: string;
}

/**
 * What is said to the policy is a root segment of its own each turn, trained in the context that it was sampled in: the
 * leaves are parts of one attempt. Tokens that go on where the last answer ended are appended to it instead.
 */
export class ObservedTranscript extends Transcript {
  readonly #session: Session;
  readonly #options: ObservationOptions;
  readonly #keep: ((content: string) => string) | undefined;
  readonly #isText: boolean;
  #system: readonly Message[] = [];
  /** Oldest first; at least one. */
  readonly #seen: Seen[] = [];
  /** The oldest that is seen is what the episode began with. */
  #fromReset = true;

  constructor(
    session: Session,
    beginning: string | readonly Message[],
    options: ObservationOptions,
    keep?: (content: string) => string,
  ) {
    super(session, beginning, undefined, keep);
    this.#session = session;
    this.#options = options;
    this.#keep = keep;
    this.#isText = typeof beginning === 'string';
  }

  /** Records what the policy is given first. Returns the segment. */
  async open({ observation, images = [], suffix = '' }: Reset): Promise<number> {
    const tokens = await this.#session.call('environment', 'observation', () => {
      const [first, ...rest] = typeof observation === 'string' ? [] : observation;
      const hasSystem = first?.role === 'system';
      if (hasSystem) this.#system = [first];
      this.#add(hasSystem ? rest : observation, suffix, images);
      return this.#tokens();
    });
    return this.#session.open(tokens, images.length > 0 ? images : undefined);
  }

  override async tell(
    answer: Answer,
    feedback: string | readonly Message[],
    images: readonly Image[] = [],
    { suffix = '', parsedAction }: Pick<StepResult, 'suffix' | 'parsedAction'> = {},
  ): Promise<number | undefined> {
    const { mode, maxHistory = Infinity } = this.#options;
    const tokens = await this.#session.call('environment', 'feedback', () => {
      const said = mode === 'concat_chat' ? answer.content : answer.text;
      this.#seen.at(-1)!.action = this.#keep?.(answer.content) ?? parsedAction ?? said;
      this.#add(feedback, suffix, images);
      if (this.#seen.length > (mode === 'last' ? 0 : maxHistory) + 1) {
        this.#seen.shift();
        this.#fromReset = false;
      }
      const shown = this.#tokens();
      if (shown.length === 0) throw new Error('it has no tokens, and the policy must be given at least one');
      return shown;
    });
    const { recorder } = this.#session;
    if (!this.#session.fits(0, tokens.length)) return undefined;
    const context = recorder.context(answer.segment);
    if (context.length < tokens.length && context.every((token, i) => token === tokens[i])) {
      return feed(answer.segment, 'environment', tokens.subarray(context.length), images);
    }
    return feed(
      -1,
      'prompt',
      tokens,
      this.#seen.flatMap(one => one.images),
    );

    function feed(parent: number, source: 'prompt' | 'environment', tokens: Int32Array, shown: readonly Image[]) {
      return recorder.feed(parent, source, tokens, shown.length > 0 ? shown : undefined);
    }
  }

  #add(content: string | readonly Message[], suffix: string, images: readonly Image[]): void {
    if ((typeof content === 'string') !== this.#isText) {
      throw new Error('the observation and all feedback of an episode are messages, or all of them are text');
    }
    this.#seen.push({ content: without(suffix, content), suffix, images });
  }

  #tokens(): Int32Array {
    const { renderer } = this.#session.context;
    const newest = this.#seen.at(-1)!;
    switch (this.#options.mode) {
      case 'last':
        if (!this.#isText) return renderer.prompt([...this.#system, ...messages(newest, true)]);
        return renderer.encode(newest.content + newest.suffix);
      case 'concat':
        return this.#written(this.#seen.map(({ content }) => lines(content)).join('') + newest.suffix);
      case 'concat_with_action':
        return this.#written(history(this.#seen) + newest.suffix);
      case 'concat_chat': {
        const said = this.#seen.flatMap(one => [
          ...messages(one, one === newest),
          ...(one.action === undefined ? [] : [{ role: 'assistant', content: one.action }]),
        ]);
        const prompt = renderer.prompt([...this.#system, ...said]);
        return this.#isText ? joined(prompt, renderer.encode(newest.suffix)) : prompt;
      }
      case 'concat_chat_on_reset': {
        if (!this.#fromReset) return renderer.encode(history(this.#seen) + newest.suffix);
        const [first, ...later] = this.#seen as [Seen, ...Seen[]];
        const prompt = renderer.prompt([...this.#system, ...messages(first, first === newest)]);
        if (!this.#isText && first === newest) return prompt;
        const rest = `${lines(first.action ?? '')}${history(later)}${newest.suffix}`;
        const ended = renderer.decode(prompt, { special: true }).endsWith('\n');
        return joined(prompt, renderer.encode(ended ? rest : `\n${rest}`));
      }
    }
  }

  #written(text: string): Int32Array {
    const { renderer } = this.#session.context;
    if (this.#isText) return renderer.encode(text);
    return renderer.prompt([...this.#system, { role: 'user', content: text }]);
  }
}

/** Observations and answers by turns. */
function history(seen: readonly Seen[]): string {
  return seen.map(({ content, action = '' }) => lines(content) + lines(action)).join('');
}

/** Each text on lines of its own; nothing for one that is empty. */
function lines(content: string | readonly Message[]): string {
  if (typeof content !== 'string') return content.map(message => lines(message.content)).join('');
  return content === '' || content.endsWith('\n') ? content : `${content}\n`;
}

/** As a conversation: text is what a user says, its suffix apart; messages have theirs at the end where it is shown. */
function messages({ content, suffix }: Seen, isNewest: boolean): readonly Message[] {
  if (typeof content === 'string') return [{ role: 'user', content }];
  const last = content.at(-1);
  if (!isNewest || suffix === '' || last === undefined) return content;
  return [...content.slice(0, -1), { ...last, content: last.content + suffix }];
}

function without(suffix: string, content: string | readonly Message[]): string | readonly Message[] {
  if (suffix === '') return content;
  const last = typeof content === 'string' ? { content } : content.at(-1);
  if (!last?.content.endsWith(suffix)) {
    throw new Error(`suffix: the observation does not end with ${preview(suffix)}; give its last characters, or none`);
  }
  const rest = last.content.slice(0, -suffix.length);
  return typeof content === 'string' ? rest : [...content.slice(0, -1), { ...content.at(-1)!, content: rest }];
}

function joined(first: Int32Array, second: Int32Array): Int32Array {
  return Int32Array.from([...first, ...second]);
}
