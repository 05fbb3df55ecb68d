import { columnAt, columnsOf, type Row, requiredColumn } from '../data/columns.ts';
import type { LearnerSequence } from '../engines/contracts.ts';
import type { Message } from '../episode/task.ts';
import { isMessage } from '../rollout/tasks.ts';
import type { Renderer } from '../text/renderer.ts';
import { answerSequence, textSequences } from './conversations.ts';

/** Two answers to one prompt, of which the first is preferred. */
export interface Preference {
  readonly prompt: string | readonly Message[];
  readonly chosen: string;
  readonly rejected: string;
  /** By how much the chosen answer is better; 0 when the dataset does not say. */
  readonly margin: number;
}

/** The answers behind the prompt; their tokens, with the one that ends them, are predicted. */
export interface PreferencePair {
  readonly chosen: LearnerSequence;
  readonly rejected: LearnerSequence;
  readonly margin: number;
}

export interface PreferenceOptions {
  /** Column of the prompt; without it the columns of the answers hold the prompt, too, as conversations or as text. */
  readonly promptKey?: string | undefined;
  readonly chosenKey: string;
  readonly rejectedKey: string;
  /** Column of the margin, a number ≥ 0. */
  readonly marginKey?: string | undefined;
  /** Text around the prompt, which takes the place of {}. */
  readonly inputTemplate?: string | undefined;
  /** Prompt text becomes a user message. */
  readonly applyChatTemplate: boolean;
}

/** The pair of a dataset row. Throws, naming the column, for rows that no pair can be made of. */
export function rowToPreference(row: unknown, options: PreferenceOptions): Preference {
  const { promptKey, chosenKey, rejectedKey } = options;
  const columns = columnsOf(row);
  const before = promptKey === undefined ? [] : promptOf(columns, promptKey, options);
  const [chosen, rejected] = [answerOf(columns, chosenKey, 'chosen'), answerOf(columns, rejectedKey, 'rejected')];
  if (JSON.stringify(chosen.context) !== JSON.stringify(rejected.context)) {
    throw new Error(
      `the conversations in "${chosenKey}" and "${rejectedKey}" must differ in their last message alone; give answers to the same prompt`,
    );
  }
  if (chosen.answer === rejected.answer) {
    throw new Error(
      `"${chosenKey}" and "${rejectedKey}" hold the same answer; nothing can be learned from a pair without a difference`,
    );
  }
  const answers = { chosen: chosen.answer, rejected: rejected.answer, margin: marginOf(columns, options.marginKey) };
  if (typeof before !== 'string') return { prompt: together(before, chosen.context), ...answers };
  if (chosen.context.length === 0) return { prompt: before, ...answers };
  throw new Error(
    `the answers are conversations and the prompt in "${promptKey}" (data.prompt_key) is text; set data.apply_chat_template`,
  );
}

/** Both answers as a policy would be fed and sample them. */
export function preferencePair({ prompt, chosen, rejected, margin }: Preference, renderer: Renderer): PreferencePair {
  const sequence = (answer: string) =>
    prompt === ''
      ? textSequences(answer, renderer, Number.POSITIVE_INFINITY)[0]!
      : answerSequence(prompt, answer, renderer);
  return { chosen: sequence(chosen), rejected: sequence(rejected), margin };
}

/** Sequences in the order that the losses of pairs read: chosen, rejected, chosen and so on. */
export function sequencesOf(pairs: readonly PreferencePair[]): LearnerSequence[] {
  return pairs.flatMap(({ chosen, rejected }) => [chosen, rejected]);
}

/** The longer of the two, in tokens. */
export function pairLength({ chosen, rejected }: PreferencePair): number {
  return Math.max(chosen.tokens.length, rejected.tokens.length);
}

function together(prompt: readonly Message[], context: readonly Message[]): string | readonly Message[] {
  return prompt.length + context.length === 0 ? '' : [...prompt, ...context];
}

function promptOf(columns: Row, key: string, options: PreferenceOptions): string | readonly Message[] {
  const prompt = requiredColumn(columns, key, 'data.prompt_key');
  if (Array.isArray(prompt) && prompt.length > 0 && prompt.every(isMessage)) return prompt;
  if (typeof prompt !== 'string' || prompt === '') {
    throw new Error(`column "${key}" (data.prompt_key) must hold text or a list of messages {role, content}`);
  }
  const text = options.inputTemplate === undefined ? prompt : options.inputTemplate.replace('{}', () => prompt);
  return options.applyChatTemplate ? [{ role: 'user', content: text }] : text;
}

/** Text, or a conversation whose last message is the answer. */
function answerOf(columns: Row, key: string, side: string): { answer: string; context: readonly Message[] } {
  const value = requiredColumn(columns, key, `data.${side}_key`);
  if (typeof value === 'string' && value !== '') return { answer: value, context: [] };
  if (Array.isArray(value) && value.length > 0 && value.every(isMessage)) {
    const last = value.at(-1) as Message;
    if (last.role === 'assistant' && last.content !== '') return { answer: last.content, context: value.slice(0, -1) };
    throw new Error(`the conversation in "${key}" (data.${side}_key) must end with an answer of the role assistant`);
  }
  throw new Error(
    `column "${key}" (data.${side}_key) must hold the text of an answer or a list of messages {role, content}`,
  );
}

function marginOf(columns: Row, key: string | undefined): number {
  if (key === undefined) return 0;
  const value = columnAt(columns, key) ?? 0;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Error(`column "${key}" must hold the margin of the pair, a number; got ${JSON.stringify(value)}`);
}
