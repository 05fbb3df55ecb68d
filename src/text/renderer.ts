import type { Message } from '../episode/task.ts';
import type { ToolDialect } from './tool-calls/dialect.ts';

/** Tokens that new messages add, or the reason why they cannot simply be added. */
export type Delta =
  | { readonly kind: 'append'; readonly tokens: Int32Array }
  /** The template renders the earlier conversation differently now: the whole context must be fed anew, as a branch. */
  | { readonly kind: 'branch'; readonly tokens: Int32Array; readonly reason: string };

/** Text to tokens and back. */
export interface TextCodec {
  readonly vocabularySize: number;
  /** Token ids of text, special tokens recognised, none added. Throws on text the vocabulary cannot express. */
  encode(text: string): Int32Array;
  /** Text of tokens; special tokens are left out unless asked for. Ids that stand for no text are left out. */
  decode(tokens: ArrayLike<number>, options?: { readonly special?: boolean }): string;
}

/** Tokenizer and chat template of one checkpoint behind the few questions that executors ask. */
export interface Renderer extends TextCodec {
  /** Ids that end an answer (end of sequence, end of turn). */
  readonly stopTokens: readonly number[];
  /** How the checkpoint writes tool calls; undefined when its chat template shows no tools. */
  readonly toolDialect?: ToolDialect | undefined;
  /** Tokens of a conversation up to the point where the policy answers. */
  prompt(messages: readonly Message[], options?: { readonly tools?: readonly unknown[] }): Int32Array;
  /**
   * Tokens of an answer as the policy would sample them behind `context`, the prompt of the `earlier` messages: with its
   * tool calls as the template writes them and the token that ends it. Throws where the template does not show the calls.
   */
  answer(conversation: {
    readonly context: Int32Array;
    readonly earlier: readonly Message[];
    readonly answer: Message;
    readonly tools?: readonly unknown[] | undefined;
  }): Int32Array;
  /**
   * Tokens to feed after the policy's sampled answer, so that the next answer can begin. `context` is what the policy
   * has seen and sampled so far; it is never re-encoded unless the template forces a branch.
   */
  extend(conversation: {
    readonly context: Int32Array;
    readonly earlier: readonly Message[];
    /** The last answer, decoded, as the template will show it. */
    readonly answer: Message;
    readonly added: readonly Message[];
    readonly tools?: readonly unknown[];
  }): Delta;
}
