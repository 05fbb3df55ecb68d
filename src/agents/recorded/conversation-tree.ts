import { hash } from 'node:crypto';
import { messageOf } from '../../episode/failure.ts';
import type { ToolDialect, ToolSchema } from '../../text/tool-calls/dialect.ts';
import type { Answer, Session } from '../session.ts';
import { ApiError } from './api-error.ts';
import type { ChatMessage, GivenAnswer } from './dialects/contracts.ts';
import { canonical, normal, sameAnswer } from './same-answer.ts';
import { shown } from './shown.ts';

/**
 * Which place of an episode's segment tree a request continues. The longest beginning of its messages that was
 * recorded, sampled answers included, is taken over token by token; what follows is rendered by the chat template and
 * fed. Nothing that was sampled is encoded again, unless a branch is opened for one of these causes:
 */
export const CAUSES = [
  'fork', // an answer is continued a second time, in another way
  'resampled', // a conversation is answered a second time
  'edited', // messages of a recorded conversation were changed, or assistant messages put in
  'new', // a conversation that continues none: a sub-agent, a summary
  'reasoning', // the chat template no longer shows what the policy thought
  'tools', // the chat template shows other tools
  'template', // the chat template shows something else differently
] as const;
export type Cause = (typeof CAUSES)[number];

/** A point of the tree at which the policy was asked. */
export interface Place {
  /** The policy answers below it. */
  readonly segment: number;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolSchema[];
  readonly answers: Recorded[];
}

interface Recorded {
  readonly segment: number;
  readonly place: Place;
  readonly given: GivenAnswer;
  /** As the chat template shows it: everything that was sampled. */
  readonly message: ChatMessage;
  readonly tokens: number;
  continuations: number;
}

export interface Counts {
  /** Tokens of assistant messages in the histories that clients sent, and those of them that stayed as they were sampled. */
  history: number;
  replayed: number;
  readonly causes: Map<Cause, number>;
}

interface Found {
  /** The deepest recorded answer that the messages contain, and where. */
  readonly answer: Recorded | undefined;
  readonly index: number;
  readonly key: string;
}

export class ConversationTree {
  readonly counts: Counts = { history: 0, replayed: 0, causes: new Map() };
  readonly #session: Session;
  readonly #dialect: ToolDialect;
  /** By the conversation they end, tools aside; and with them. */
  readonly #asked = new Map<string, Place[]>();
  readonly #places = new Map<string, Place>();
  /** Texts of all answers, and first messages of all conversations: what an edited history still has. */
  readonly #said = new Set<string>();

  constructor(session: Session, dialect: ToolDialect) {
    this.#session = session;
    this.#dialect = dialect;
  }

  /**
   * The place that a conversation asks at; made where there is none.
   * @throws ApiError 400 for messages that the chat template refuses or that leave no room for an answer
   */
  place(messages: readonly ChatMessage[], tools: readonly ToolSchema[]): Place {
    const found = this.#find(messages);
    const key = `${found.key} ${digest(JSON.stringify(tools))}`;
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const { segment, history } = this.#feed(found, messages, tools);
    const place: Place = { segment, messages: history, tools, answers: [] };
    this.#places.set(key, place);
    this.#asked.set(found.key, [...(this.#asked.get(found.key) ?? []), place]);
    return place;
  }

  /** An answer was recorded below a place and given to the client. */
  answered(place: Place, answer: Answer, given: GivenAnswer): void {
    if (place.answers.length > 0) this.#count('resampled');
    const { segment, content, tokens } = answer;
    const message: ChatMessage = { role: 'assistant', content };
    place.answers.push({ segment, place, given, message, tokens: tokens.length, continuations: 0 });
    this.#said.add(normal(given.content));
    for (const { id } of given.calls) this.#said.add(id);
  }

  #find(messages: readonly ChatMessage[]): Found {
    let answer: Recorded | undefined;
    let index = -1;
    let key = '';
    for (const [i, message] of messages.entries()) {
      const match = message.role === 'assistant' ? this.#match(key, message) : undefined;
      if (match !== undefined) {
        answer = match;
        index = i;
      }
      key = digest(match === undefined ? `${key}\n${canonical(message)}` : `${key}\n#${match.segment}`);
    }
    return { answer, index, key };
  }

  /** The recorded answer to the conversation `key` that the message is: that with its call ids, else the latest. */
  #match(key: string, message: ChatMessage): Recorded | undefined {
    const candidates = (this.#asked.get(key) ?? []).flatMap(({ answers }) => answers);
    const same = candidates.map(recorded => ({ recorded, by: sameAnswer(message, recorded.given) }));
    return (same.findLast(({ by }) => by === 'id') ?? same.findLast(({ by }) => by === 'text'))?.recorded;
  }

  #feed({ answer, index }: Found, messages: readonly ChatMessage[], tools: readonly ToolSchema[]) {
    const { recorder, context } = this.#session;
    const added = messages.slice(index + 1);
    const foreign = added.filter(({ role }) => role === 'assistant');
    const view = (of: readonly ChatMessage[]) => shown(of, tools, this.#dialect, context.renderer.toolDialect);
    this.counts.history += foreign.reduce((sum, { content }) => sum + context.renderer.encode(content).length, 0);
    if (answer === undefined) {
      const tokens = rendered(() => context.renderer.prompt(view(messages).messages, view(messages)));
      this.#checkRoom(0, tokens.length);
      if (recorder.segments.length > 0) this.#count(this.#isEdited(messages) ? 'edited' : 'new');
      return { segment: recorder.feed(-1, 'prompt', tokens), history: messages };
    }
    const before = answer.place.messages;
    const history = [...before, answer.message, ...added];
    const all = view(history);
    // Instructions may precede the first message, so the answer's place is counted from the end.
    const at = all.messages.length - added.length - 1;
    const seen = recorder.context(answer.segment);
    const delta = rendered(() =>
      context.renderer.extend({
        context: seen,
        earlier: all.messages.slice(0, at),
        answer: all.messages[at]!,
        added: all.messages.slice(at + 1),
        ...(all.tools === undefined ? {} : { tools: all.tools }),
      }),
    );
    const sampled = this.#sampledUpTo(answer);
    if (delta.kind === 'append') {
      this.#checkRoom(seen.length, delta.tokens.length);
      this.counts.history += sampled;
      this.counts.replayed += sampled;
      if (foreign.length > 0) this.#count('edited');
      else if (answer.continuations > 0) this.#count('fork');
      answer.continuations += 1;
      return { segment: recorder.feed(answer.segment, 'environment', delta.tokens), history };
    }
    this.#checkRoom(0, delta.tokens.length);
    this.counts.history += sampled;
    this.#count(this.#causeOf(answer, tools));
    return { segment: recorder.feed(-1, 'prompt', delta.tokens), history };
  }

  /** Sampled tokens on the path to an answer. */
  #sampledUpTo(answer: Recorded): number {
    const { segments } = this.#session.recorder;
    let sum = 0;
    for (let id = answer.segment; id >= 0; id = segments[id]!.parent) {
      const { source, tokens } = segments[id]!;
      if (source === 'policy') sum += tokens.length;
    }
    return sum;
  }

  #causeOf(answer: Recorded, tools: readonly ToolSchema[]): Cause {
    if (JSON.stringify(answer.place.tools) !== JSON.stringify(tools)) return 'tools';
    const thought = [answer.message, ...answer.place.messages].some(({ content }) => content.includes('</think>'));
    return thought ? 'reasoning' : 'template';
  }

  #isEdited(messages: readonly ChatMessage[]): boolean {
    return messages.some(({ role, content, tool_calls: calls = [], tool_call_id: of }) => {
      if (role === 'tool') return of !== undefined && this.#said.has(of);
      if (role !== 'assistant') return false;
      return calls.some(({ id }) => this.#said.has(id ?? '')) || (content !== '' && this.#said.has(normal(content)));
    });
  }

  #checkRoom(length: number, more: number): void {
    if (this.#session.fits(length, more)) return;
    const { window } = this.#session;
    // NeMo Gym's model servers look for the words `context length`, and end an episode in order where they find them.
    throw new ApiError(
      400,
      `the conversation has ${length + more} tokens, which leaves no room for an answer in a context length of ${window}; shorten it`,
      { code: 'context_length_exceeded' },
    );
  }

  #count(cause: Cause): void {
    const { causes } = this.counts;
    causes.set(cause, (causes.get(cause) ?? 0) + 1);
  }
}

function rendered<T>(render: () => T): T {
  try {
    return render();
  } catch (error) {
    throw new ApiError(400, messageOf(error), { cause: error });
  }
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}
