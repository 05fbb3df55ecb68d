import { columnAt, columnsOf } from '../data/columns.ts';
import type { LearnerSequence } from '../engines/contracts.ts';
import type { Message } from '../episode/task.ts';
import { isMessage } from '../rollout/tasks.ts';
import type { Renderer } from '../text/renderer.ts';

/**
 * Supervised examples as token sequences. They are put together piece by piece, exactly as an executor would feed and
 * sample them, so a policy is trained on the tokens it will meet, and the loss covers the answers and nothing else.
 */

/** A prompt and its answers as a conversation, or as text. */
export type Example =
  | { readonly messages: readonly Message[] }
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
  const input = columnAt(columns, inputKey);
  const isConversation = Array.isArray(input) && input.length > 0 && input.every(isMessage);
  if (outputKey === undefined) {
    if (isConversation) return { messages: input };
    throw new Error(
      `column "${inputKey}" (data.input_key) must hold a list of messages {role, content}; for prompt and response columns set data.output_key`,
    );
  }
  const response = columnAt(columns, outputKey);
  if (typeof response !== 'string' || response === '') {
    throw new Error(`column "${outputKey}" (data.output_key) must hold the text of the response`);
  }
  if (isConversation) return { prompt: input, response };
  if (typeof input !== 'string' || input === '') {
    throw new Error(`column "${inputKey}" (data.input_key) must hold text or a list of messages {role, content}`);
  }
  const text = inputTemplate === undefined ? input : inputTemplate.replace('{}', () => input);
  return { prompt: applyChatTemplate ? [{ role: 'user', content: text }] : text, response };
}

/**
 * One sequence per example, more where the template shows an earlier turn differently later on (each answer is
 * predicted in exactly one of them). Answers are predicted with the token that ends them.
 */
export function exampleSequences(example: Example, renderer: Renderer): LearnerSequence[] {
  if ('messages' in example) return conversationSequences(example.messages, renderer);
  const { prompt, response } = example;
  if (typeof prompt === 'string') return [answerSequence(prompt, response, renderer)];
  return conversationSequences([...prompt, { role: 'assistant', content: response }], renderer);
}

/** A prompt and one answer to it; nothing but the answer, with the token that ends it, is predicted. */
export function answerSequence(
  prompt: string | readonly Message[],
  response: string,
  renderer: Renderer,
): LearnerSequence {
  const sequence = new Sequence(typeof prompt === 'string' ? renderer.encode(prompt) : renderer.prompt(prompt));
  sequence.predict(answerTokens(response, renderer));
  return sequence.finish();
}

function conversationSequences(messages: readonly Message[], renderer: Renderer): LearnerSequence[] {
  const answers = messages.flatMap((message, i) => (message.role === 'assistant' ? [i] : []));
  const first = answers[0];
  if (first === undefined) throw new Error('the conversation has no message of the role assistant to learn from');
  const finished: LearnerSequence[] = [];
  let sequence = new Sequence(renderer.prompt(messages.slice(0, first)));
  answers.forEach((index, i) => {
    const answer = messages[index]!;
    if (answer.tool_calls !== undefined) {
      throw new Error('tool_calls cannot be learned from as they are; write the call as the content of the message');
    }
    sequence.predict(answerTokens(answer.content, renderer));
    const next = answers[i + 1];
    if (next === undefined) return;
    const delta = renderer.extend({
      context: sequence.tokens(),
      earlier: messages.slice(0, index),
      answer,
      added: messages.slice(index + 1, next),
    });
    if (delta.kind === 'append') {
      sequence.feed(delta.tokens);
    } else {
      finished.push(sequence.finish());
      sequence = new Sequence(delta.tokens);
    }
  });
  return [...finished, sequence.finish()];
}

/** A text without a prompt: all of it, with the token that ends it, is predicted but the first, which nothing precedes. */
export function textSequence(text: string, renderer: Renderer): LearnerSequence {
  const tokens = answerTokens(text, renderer);
  return { tokens, predict: Uint8Array.from(tokens, (_, t) => (t > 0 ? 1 : 0)) };
}

/** The answer as a policy would sample it: its text, then the token that ends a turn. */
function answerTokens(content: string, renderer: Renderer): Int32Array {
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
