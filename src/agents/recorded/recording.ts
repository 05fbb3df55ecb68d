import type { Generation } from '../../engines/contracts.ts';
import { EpisodeError } from '../../episode/failure.ts';
import { cutAtStop } from '../../text/stop-strings.ts';
import { splitReasoning, type ToolDialect } from '../../text/tool-calls/dialect.ts';
import { react } from '../../text/tool-calls/react.ts';
import type { Answer, Session } from '../session.ts';
import { ApiError, tooMany } from './api-error.ts';
import { ConversationTree, type Place } from './conversation-tree.ts';
import { checkDemands } from './demands.ts';
import type { AnswerRequest, GivenAnswer, Reply } from './dialects/contracts.ts';
import { fidelityMetrics } from './fidelity.ts';
import { pruneUnanswered } from './prune.ts';
import { TextDeltas } from './text-deltas.ts';

/** One request as the recording sees it, whatever brought it. */
export interface Asked {
  readonly request: AnswerRequest;
  /** Names the reply and its first answer. */
  readonly id: string;
  /** Equal for equal requests. */
  readonly digest: string;
  /** The client says that it asks again. */
  readonly isRetry: boolean;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
  /** Receives text as it is sampled: a beginning of what the answer says. */
  readonly onText?: ((piece: string) => void) | undefined;
}

/** A reply on its way. `delivered` is called when the client has it: a request repeated before that is a retry. */
export interface Pending {
  readonly reply: Reply;
  delivered(): void;
}

interface Given {
  readonly reply: Reply;
  isDelivered: boolean;
}

interface Reading {
  readonly request: AnswerRequest;
  readonly id: string;
  /** Calls in the answer are calls. */
  readonly mayCall: boolean;
  /** The prompt ends inside of reasoning. */
  readonly opened: boolean;
}

const COUNTERS = [
  'turns',
  'tool_calls',
  'recorded_malformed_calls',
  'recorded_choice_unmet',
  'recorded_format_unmet',
  'recorded_overridden',
  'recorded_retries',
  'recorded_cancelled',
  'recorded_errors',
];

/** Requests of one episode that are answered at the same time. */
const MAX_CONCURRENT = 64;

/** Records what one episode's program asks of the policy. */
export class Recording {
  readonly tree: ConversationTree;
  /** A limit of the episode at which a request was refused. */
  refused: 'turns' | 'tokens' | undefined;
  /** What went wrong on the policy's side, last. */
  providerError: EpisodeError | undefined;
  readonly #session: Session;
  readonly #dialect: ToolDialect;
  readonly #strict: boolean;
  readonly #over = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  readonly #replies = new Map<string, Given>();
  readonly #segments = new Map<string, number>();
  readonly #rewards = new Map<number | undefined, number>();
  /** What the last answer said. */
  lastText = '';
  #turns = 0;
  #calls = 0;
  #keepPartial = false;

  /** @param strict refuses requests that ask for what cannot be kept: see demands.ts */
  constructor(session: Session, dialect?: ToolDialect, strict = false) {
    this.#session = session;
    this.#strict = strict;
    this.#dialect = dialect ?? session.context.renderer.toolDialect ?? react;
    this.tree = new ConversationTree(session, this.#dialect);
    // Counted from 0, so that means over episodes are means over all of them.
    session.addMetrics(Object.fromEntries(COUNTERS.map(name => [name, 0])));
  }

  /**
   * Answers a request and records the answers, once: a request that is repeated although it was answered gets the same
   * answer if the client never had it, or says that it retries. Rejects with an ApiError.
   */
  async answer(asked: Asked): Promise<Pending> {
    const { request, digest, isRetry } = asked;
    const known = this.#replies.get(digest);
    if (known !== undefined && (isRetry || !known.isDelivered)) {
      this.#session.addMetrics({ recorded_retries: 1 });
      return pending(known);
    }
    if (this.#over.signal.aborted) throw new ApiError(409, 'this episode is over');
    checkDemands(request, this.#strict);
    if (this.#running.size >= MAX_CONCURRENT) throw tooMany(`an episode answers ${MAX_CONCURRENT} requests at a time`);
    const { maxTurns } = this.#session.context.limits;
    if (this.#turns + request.n > maxTurns) {
      this.refused = 'turns';
      throw new ApiError(400, `an episode has ${maxTurns} answers (agent.max_turns), and they are used up`, {
        code: 'turn_limit_exceeded',
      });
    }
    this.#turns += request.n;
    const running = this.#sample(asked);
    this.#running.add(running);
    try {
      const given = { reply: await running, isDelivered: false };
      this.#replies.set(digest, given);
      return pending(given);
    } finally {
      this.#running.delete(running);
    }
  }

  /**
   * The reward of an answer, or of the episode without an id. A second one for the same takes the first one's place.
   * @throws ApiError 404 for an unknown answer
   */
  reward(value: number, answer?: string): void {
    if (this.#over.signal.aborted) throw new ApiError(409, 'this episode is over');
    const segment = answer === undefined ? undefined : this.#segments.get(answer);
    if (answer !== undefined && segment === undefined) {
      throw new ApiError(404, `this episode has no answer ${JSON.stringify(answer)}; give the id of a reply`);
    }
    this.#rewards.set(segment, value);
  }

  /** Whether rewards came over HTTP. */
  get isRewarded(): boolean {
    return this.#rewards.size > 0;
  }

  /** Ends what is still being answered; what was sampled of it is recorded if `keepPartial`. No request is answered after. */
  async end({ keepPartial }: { readonly keepPartial: boolean }): Promise<void> {
    this.#keepPartial = keepPartial;
    this.#over.abort(new Error('this episode is over'));
    await Promise.allSettled(this.#running);
  }

  /** Finishes the tree: rewards that came over HTTP on their steps, nothing unanswered; its account becomes metrics. */
  settle(): void {
    const { recorder } = this.#session;
    for (const [segment, reward] of this.#rewards) {
      if (segment === undefined) recorder.addReward(reward);
      else recorder.steps.find(step => step.segment === segment)!.reward += reward;
    }
    pruneUnanswered(recorder);
    this.#session.addMetrics(fidelityMetrics(this.tree.counts));
  }

  async #sample({ request, id, signal, onText }: Asked): Promise<Reply> {
    const session = this.#session;
    const { renderer, policy, limits } = session.context;
    let place: Place;
    try {
      place = this.tree.place(request.messages, request.tools);
    } catch (error) {
      this.#turns -= request.n;
      if (error instanceof ApiError && error.code === 'context_length_exceeded') this.refused = 'tokens';
      throw error;
    }
    const calls = request.tools.length > 0 && request.toolChoice !== 'none';
    const params = {
      maxTokens: Math.min(request.maxTokens ?? limits.maxNewTokens, limits.maxNewTokens),
      stopStrings: [...policy.params.stopStrings, ...(calls ? this.#dialect.stopStrings : []), ...request.stop],
      ...(request.topLogprobs ? { topLogprobs: Math.min(request.topLogprobs, renderer.vocabularySize) } : {}),
    };
    const either = AbortSignal.any([signal, this.#over.signal]);
    const opened = this.#opensThinking(place);
    const deltas =
      onText === undefined || opened || (calls && !this.#showsMarks())
        ? undefined
        : new TextDeltas(
            tokens => renderer.decode(tokens),
            params.stopStrings,
            onText,
            calls ? this.#dialect.marks : undefined,
          );
    const call = { signal: either, ...(deltas ? { onToken: (token: number) => deltas.push(token) } : {}) };
    const samples = Array.from({ length: request.n }, () => session.sample(place.segment, params, call));
    const settled = await Promise.allSettled(samples);
    const failed = settled.find(one => one.status === 'rejected');
    if (failed !== undefined) {
      this.#turns -= request.n;
      throw this.#unavailable(failed.reason);
    }
    const generations = await Promise.all(samples);
    if (generations.some(({ finishReason }) => finishReason === 'abort')) {
      this.#turns -= request.n;
      throw this.#aborted(place, generations, signal);
    }
    if (request.overridden.length > 0) session.addMetrics({ recorded_overridden: 1 });
    const answers = generations.map((generation, i) =>
      this.#record(place, generation, { request, id: i === 0 ? id : `${id}-${i}`, mayCall: calls, opened }),
    );
    const completion = generations.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const prompt = session.recorder.context(place.segment).length;
    const replayed = prompt - session.recorder.segments[place.segment]!.tokens.length;
    return {
      id,
      created: Math.floor(Date.now() / 1000),
      model: request.model,
      answers,
      usage: { prompt, replayed, completion },
    };
  }

  #record(place: Place, generation: Generation, asked: Reading): GivenAnswer {
    const session = this.#session;
    const { request, mayCall } = asked;
    const answer = session.record(place.segment, generation);
    const { finishReason } = generation;
    const prompt = request.tokenIds ? session.recorder.context(place.segment) : undefined;
    const ids = prompt && { prompt, answer: generation.tokens, logprobs: generation.logprobs };
    const given = { ...this.#given(answer, asked), ...(ids && { ids }) };
    const malformed = mayCall ? this.#dialect.parse(answer.content).calls.length - given.calls.length : 0;
    session.recorder.step({
      segment: answer.segment,
      reward: 0,
      finishReason,
      isVoid: given.calls.length === 0 && given.content === '',
      toolFailed: malformed > 0,
    });
    session.addMetrics({ turns: 1, tool_calls: given.calls.length, recorded_malformed_calls: malformed });
    const { toolChoice, toolName, format } = request;
    const isCalled = given.calls.some(({ name }) => toolName === undefined || name === toolName);
    if (toolChoice === 'required' && !isCalled) session.addMetrics({ recorded_choice_unmet: 1 });
    if (format && given.calls.length === 0 && !format.fits(given.content)) {
      session.addMetrics({ recorded_format_unmet: 1 });
    }
    this.#segments.set(given.id, answer.segment);
    this.tree.answered(place, answer, given);
    this.lastText = given.content;
    return given;
  }

  /** An answer as the client is given it. One whose calls can all not be read is given as the text that it is. */
  #given(answer: Answer, { request, id, mayCall, opened }: Reading): GivenAnswer {
    const { generation } = answer;
    // Clients of these APIs are never shown the stop string.
    const text = cutAtStop(answer.text, generation.stopString, false);
    const parsed = mayCall ? this.#dialect.parse(cutAtStop(answer.content, generation.stopString, false)) : undefined;
    const cut = generation.finishReason === 'length';
    const calls = (cut ? [] : (parsed?.calls ?? [])).flatMap(call => {
      if (call.kind !== 'call') return [];
      const callId = `c${(this.#calls++).toString(36).padStart(8, '0')}`;
      return [{ id: callId, name: call.name, arguments: JSON.stringify(call.arguments) }];
    });
    const isText = parsed === undefined || (calls.length === 0 && parsed.calls.length > 0);
    const thinks = opened || text.trimStart().startsWith('<think>');
    const said = isText ? (thinks ? splitReasoning(text) : { reasoning: undefined, rest: text }) : undefined;
    const reasoning = said === undefined ? parsed?.reasoning : said.reasoning;
    const content = said === undefined ? (parsed?.content ?? '') : said.rest;
    return {
      id,
      content: reasoning === undefined && !mayCall ? content : content.trimStart(),
      reasoning,
      calls,
      finish: calls.length > 0 ? 'tool_calls' : cut ? 'length' : 'stop',
      stopString: generation.stopString,
      tokens: request.topLogprobs === undefined ? [] : this.#tokens(generation, request.namesTokensById ?? false),
    };
  }

  /** Whether text without special tokens shows where a call begins, so that what comes before it may be given out early. */
  #showsMarks(): boolean {
    const { renderer } = this.#session.context;
    const { marks } = this.#dialect;
    return marks.length > 0 && marks.every(mark => renderer.decode(renderer.encode(mark)) === mark);
  }

  /** Templates of some reasoning models begin the answer with `<think>`. */
  #opensThinking(place: Place): boolean {
    const { recorder, context } = this.#session;
    const end = recorder.segments[place.segment]!.tokens.slice(-8);
    return /<think>\s*$/.test(context.renderer.decode(end, { special: true }));
  }

  #tokens({ tokens, logprobs, topLogprobs }: Generation, byId: boolean): GivenAnswer['tokens'] {
    const { renderer } = this.#session.context;
    const named = (token: number) => (byId ? `token_id:${token}` : renderer.decode([token], { special: true }));
    const shown = (token: number, logprob: number) => ({ token: named(token), logprob });
    return Array.from(tokens, (token, t) => {
      const top = topLogprobs?.[t];
      const best = top ? Array.from(top.tokens, (id, i) => shown(id, top.logprobs[i]!)) : [];
      return { ...shown(token, logprobs[t]!), top: best };
    });
  }

  #aborted(place: Place, generations: readonly Generation[], signal: AbortSignal): ApiError {
    const session = this.#session;
    if (this.#over.signal.aborted && this.#keepPartial) {
      for (const generation of generations.filter(({ tokens }) => tokens.length > 0)) {
        const { segment } = session.record(place.segment, generation);
        session.recorder.step({ segment, reward: 0, finishReason: generation.finishReason });
      }
    }
    if (this.#over.signal.aborted) return new ApiError(409, 'this episode is over');
    if (signal.aborted) {
      session.addMetrics({ recorded_cancelled: 1 });
      return new ApiError(499, 'the client closed the connection');
    }
    return this.#unavailable(new EpisodeError('provider', 'policy: the answer was aborted'));
  }

  #unavailable(error: unknown): ApiError {
    if (this.#over.signal.aborted || this.#session.signal.aborted) return new ApiError(409, 'this episode is over');
    if (error instanceof EpisodeError) this.providerError = error;
    this.#session.addMetrics({ recorded_errors: 1 });
    return new ApiError(503, error instanceof Error ? error.message : String(error), {
      type: 'server_error',
      cause: error,
    });
  }
}

function pending(given: Given): Pending {
  return {
    reply: given.reply,
    delivered: () => {
      given.isDelivered = true;
    },
  };
}
