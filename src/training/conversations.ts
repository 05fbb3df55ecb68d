import { columnAt, columnsOf, preview, type Row, requiredColumn } from '../data/columns.ts';
import type { LearnerSequence } from '../engines/contracts.ts';
import { messageOf } from '../episode/failure.ts';
import type { Message } from '../episode/task.ts';
import { isMessage } from '../rollout/tasks.ts';
import type { Renderer } from '../text/renderer.ts';

/**
 * Supervised examples as token sequences. They are put together piece by piece, exactly as an executor would feed and
 * sample them, so a policy is trained on the tokens it will meet, and the loss covers the answers and nothing else.
 */

/** A prompt and its answers as a conversation, or as text. */
export type Example =
  | { readonly messages: readonly Message[]; readonly tools?: readonly unknown[] | undefined }
  | { readonly prompt: string | readonly Message[]; readonly response: string };

export interface ExampleOptions {
  /** Column of the prompt, or of the whole conversation. */
  readonly inputKey: string;
  /** Column of the response; without it the input column must hold conversations. */
  readonly outputKey?: string | undefined;
  /** Text around the prompt, which takes the place of {}. */
  readonly inputTemplate?: string | undefined;
  /** Prompt text becomes a user message. */
  readonly applyChatTemplate: boolean;
}

/** The example of a dataset row. Throws, naming the column, when the row does not have what is asked. */
export function rowToExample(row: unknown, options: ExampleOptions): Example {
  const { inputKey, outputKey, inputTemplate, applyChatTemplate } = options;
  const columns = columnsOf(row);
  const input = requiredColumn(columns, inputKey, 'data.input_key');
  const messages = conversationOf(input);
  if (outputKey === undefined) {
    if (messages !== undefined) return { messages, ...toolsOf(columns) };
    throw new Error(
      `column "${inputKey}" (data.input_key) must hold a list of messages {role, content}, got ${preview(input)}; for prompt and response columns set data.output_key`,
    );
  }
  const response = requiredColumn(columns, outputKey, 'data.output_key');
  if (typeof response !== 'string' || response === '') {
    throw new Error(
      `column "${outputKey}" (data.output_key) must hold the text of the response, got ${preview(response)}`,
    );
  }
  if (messages !== undefined) return { prompt: messages, response };
  if (typeof input !== 'string' || input === '') {
    throw new Error(
      `column "${inputKey}" (data.input_key) must hold text or a list of messages {role, content}, got ${preview(input)}`,
    );
  }
  const text = inputTemplate === undefined ? input : inputTemplate.replace('{}', () => input);
  return { prompt: applyChatTemplate ? [{ role: 'user', content: text }] : text, response };
}

/** The messages of a value, a call without words as one with the content ''; undefined for anything else. */
function conversationOf(value: unknown): readonly Message[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const messages = value.map(callWithoutWords);
  return messages.every(isMessage) ? messages : undefined;
}

/** The OpenAI API has content null where an answer only calls; tables have every column in every message, null or not. */
function callWithoutWords(message: unknown): unknown {
  if (typeof message !== 'object' || message === null) return message;
  const { tool_calls: calls, ...rest } = message as Partial<Message>;
  const hasCalls = Array.isArray(calls) && calls.length > 0;
  return { ...rest, ...(hasCalls && { content: rest.content ?? '', tool_calls: calls }) };
}

/** The tools that a conversation was held with, as chat templates take them: a list, or the JSON of one. */
function toolsOf(columns: Row): { readonly tools?: readonly unknown[] } {
  const given = columnAt(columns, 'tools');
  if (given === undefined || given === null) return {};
  const tools = typeof given === 'string' ? jsonOf(given) : given;
  if (Array.isArray(tools)) return { tools };
  throw new Error(`column "tools" must hold a list of tool schemas or the JSON of one, got ${preview(given)}`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`column "tools" holds text that is not JSON (${messageOf(error)})`, { cause: error });
  }
}

/**
 * One sequence per example, more where the template shows an earlier turn differently later on (each answer is
 * predicted in exactly one of them). Answers are predicted with the token that ends them.
 */
export function exampleSequences(example: Example, renderer: Renderer): LearnerSequence[] {
  if ('messages' in example) return conversationSequences(example, renderer);
  const { prompt, response } = example;
  if (typeof prompt === 'string') return [answerSequence(prompt, response, renderer)];
  return conversationSequences({ messages: [...prompt, { role: 'assistant', content: response }] }, renderer);
}

/** A prompt and one answer to it; nothing but the answer, with the token that ends it, is predicted. */
export function answerSequence(
  prompt: string | readonly Message[],
  response: string,
  renderer: Renderer,
): LearnerSequence {
  if (typeof prompt === 'string') {
    const sequence = new Sequence(renderer.encode(prompt));
    sequence.predict(endedText(response, renderer));
    return sequence.finish();
  }
  const sequence = new Sequence(renderer.prompt(prompt));
  const answer = { role: 'assistant', content: response };
  sequence.predict(renderer.answer({ context: sequence.tokens(), earlier: prompt, answer }));
  return sequence.finish();
}

function conversationSequences(
  { messages, tools }: { readonly messages: readonly Message[]; readonly tools?: readonly unknown[] | undefined },
  renderer: Renderer,
): LearnerSequence[] {
  const answers = messages.flatMap((message, i) => (message.role === 'assistant' ? [i] : []));
  const first = answers[0];
  if (first === undefined) throw new Error('the conversation has no message of the role assistant to learn from');
  const shown = tools === undefined ? {} : { tools };
  const finished: LearnerSequence[] = [];
  let sequence = new Sequence(renderer.prompt(messages.slice(0, first), shown));
  answers.forEach((index, i) => {
    const answer = messages[index]!;
    const earlier = messages.slice(0, index);
    if (answer.content === '' && answer.tool_calls === undefined) {
      throw new Error(`message ${index + 1} of the conversation is an answer without content and tool_calls`);
    }
    sequence.predict(renderer.answer({ context: sequence.tokens(), earlier, answer, ...shown }));
    const next = answers[i + 1];
    if (next === undefined) return;
    const added = messages.slice(index + 1, next);
    const delta = renderer.extend({ context: sequence.tokens(), earlier, answer, added, ...shown });
    if (delta.kind === 'append') {
      sequence.feed(delta.tokens);
    } else {
      finished.push(sequence.finish());
      sequence = new Sequence(delta.tokens);
    }
  });
  return [...finished, sequence.finish()];
}

/**
 * A text without a prompt: all of it, with the token that ends it, is predicted but the first token, which nothing
 * precedes. Cut into windows of at most `window` tokens, each beginning with the last token of the one before, so that
 * every token is predicted once.
 */
export function textSequences(text: string, renderer: Renderer, window: number): LearnerSequence[] {
  if (window < 2) throw new Error(`windows of ${window} tokens hold nothing to predict; give at least 2`);
  const tokens = endedText(text, renderer);
  const sequences: LearnerSequence[] = [];
  for (let start = 0; start === 0 || start + 1 < tokens.length; start += window - 1) {
    const part = tokens.slice(start, start + window);
    sequences.push({ tokens: part, predict: Uint8Array.from(part, (_, t) => (t > 0 ? 1 : 0)) });
  }
  return sequences;
}

/** Text as a policy would sample it: its tokens, then the one that ends a text. */
export function endedText(content: string, renderer: Renderer): Int32Array {
  const end = renderer.stopTokens[0];
  if (end === undefined) throw new Error('the tokenizer names no end-of-sequence token, so answers cannot end');
  return Int32Array.from([...renderer.encode(content), end]);
}

class Sequence {
  readonly #tokens: number[];
  readonly #predict: number[];

  constructor(prompt: Int32Array) {
    if (prompt.length === 0) throw new Error('the prompt has no tokens');
    this.#tokens = [...prompt];
    this.#predict = this.#tokens.map(() => 0);
  }

  feed(tokens: Int32Array): void {
    for (const token of tokens) {
      this.#tokens.push(token);
      this.#predict.push(0);
    }
  }

  predict(tokens: Int32Array): void {
    for (const token of tokens) {
      this.#tokens.push(token);
      this.#predict.push(1);
    }
  }

  tokens(): Int32Array {
    return Int32Array.from(this.#tokens);
  }

  finish(): LearnerSequence {
    return { tokens: this.tokens(), predict: Uint8Array.from(this.#predict) };
  }
}
