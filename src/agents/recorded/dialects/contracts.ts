import type { z } from 'zod';
import { explain } from '../../../episode/explain.ts';
import type { Message } from '../../../episode/task.ts';
import type { ToolSchema } from '../../../text/tool-calls/dialect.ts';
import { ApiError } from '../api-error.ts';

/** What the dialects of the recording server (chat completions, Responses, Anthropic Messages) have in common. */

/** A message as clients send it back. */
export interface ChatMessage extends Message {
  /** What an assistant message says it thought. */
  readonly reasoning_content?: string;
}

export interface AnswerRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolSchema[];
  readonly toolChoice: 'auto' | 'none' | 'required';
  /** The tool that is required, where it is a certain one. */
  readonly toolName?: string | undefined;
  /** Form that the text of the answer is to have. */
  readonly format?: AnswerFormat | undefined;
  /** Tokens; the run's limit when not given. */
  readonly maxTokens?: number | undefined;
  readonly stop: readonly string[];
  /** Answers, ≥ 1. */
  readonly n: number;
  /** Most probable tokens to be given at each place; undefined where no log-probs are asked for. */
  readonly topLogprobs?: number | undefined;
  /** The ids of prompt and answer are given with the answer: beside it, as vLLM does, or bundled on it, as NeMo Gym does. */
  readonly tokenIds?: 'beside' | 'bundled' | undefined;
  /** Tokens of log-probs are written `token_id:ID`, as vLLM does. */
  readonly namesTokensById?: boolean | undefined;
  readonly stream: boolean;
  /** A last event says how many tokens were used. */
  readonly includeUsage: boolean;
  /** Parameters that were asked for and are the run's to decide: they were not followed. */
  readonly overridden: readonly string[];
  /** What the reply repeats of the request, by the dialect. */
  readonly echo?: Readonly<Record<string, unknown>>;
}

export interface AnswerFormat {
  /** Parameter that asks for it. */
  readonly name: string;
  fits(text: string): boolean;
}

export interface GivenCall {
  readonly id: string;
  readonly name: string;
  /** JSON. */
  readonly arguments: string;
}

export interface GivenToken {
  readonly token: string;
  readonly logprob: number;
  readonly top: readonly { readonly token: string; readonly logprob: number }[];
}

/** What was really sampled, and below what. */
export interface GivenIds {
  readonly prompt: Int32Array;
  /** [n] with [n] log-probs. */
  readonly answer: Int32Array;
  readonly logprobs: Float32Array;
}

export interface GivenAnswer {
  /** Unique in the run; names it when it is rewarded. */
  readonly id: string;
  readonly content: string;
  readonly reasoning: string | undefined;
  readonly calls: readonly GivenCall[];
  readonly finish: 'stop' | 'length' | 'tool_calls';
  readonly stopString: string | undefined;
  readonly tokens: readonly GivenToken[];
  /** Where they were asked for. */
  readonly ids?: GivenIds | undefined;
}

export interface Reply {
  /** That of the first answer. */
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  readonly model: string;
  readonly answers: readonly GivenAnswer[];
  readonly usage: { readonly prompt: number; readonly replayed: number; readonly completion: number };
}

export interface ServerEvent {
  readonly event?: string;
  readonly data: unknown;
}

/** The events of one streamed reply. Text may be given out before the answer is whole; `finish` gives out the rest. */
export interface ReplyStream {
  text(piece: string): readonly ServerEvent[];
  finish(reply: Reply): readonly ServerEvent[];
}

export interface Dialect {
  /** @throws ApiError */
  parse(body: Readonly<Record<string, unknown>>): AnswerRequest;
  body(request: AnswerRequest, reply: Reply): unknown;
  stream(request: AnswerRequest, head: Pick<Reply, 'id' | 'created' | 'model'>): ReplyStream;
  error(error: ApiError): unknown;
  /** Of the ids of its replies. */
  readonly prefix: string;
  /** Ends a stream. */
  readonly done?: string;
}

/** @throws ApiError 400 that names the field */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new ApiError(400, explain(parsed.error, body));
}

/** What of a text is left to give out behind `given`. */
export function restOf(text: string, given: string): string {
  return text.startsWith(given) ? text.slice(given.length) : '';
}

export function openAiError({ message, type, code }: ApiError): unknown {
  return { error: { message, type, param: null, code } };
}

/** Names of the parameters that have a value which is not the one they have by themselves. */
export function overridden(given: Readonly<Record<string, unknown>>, neutral: Readonly<Record<string, unknown>>) {
  return Object.entries(neutral).flatMap(([name, usual]) => {
    const value = given[name];
    const isNeutral = value === undefined || value === null || value === usual || JSON.stringify(value) === '{}';
    return isNeutral ? [] : [name];
  });
}
