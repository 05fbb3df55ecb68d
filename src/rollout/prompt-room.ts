import { messageOf } from '../episode/failure.ts';
import type { Task } from '../episode/task.ts';
import type { Renderer } from '../text/renderer.ts';

/** What a prompt must leave room in. */
export interface Room {
  readonly renderer: Pick<Renderer, 'encode' | 'prompt'>;
  /** Tokens that the model sees. */
  readonly contextLength: number;
}

/** Tokens of a task's prompt as a single-turn agent feeds it. Throws, naming the chat template, when that fails. */
export function promptTokens({ prompt }: Pick<Task, 'prompt'>, renderer: Room['renderer']): Int32Array {
  if (typeof prompt === 'string') return renderer.encode(prompt);
  try {
    return renderer.prompt(prompt);
  } catch (error) {
    throw new Error(
      `the chat template of the model refuses the messages (${prompt.map(({ role }) => role).join(', ')}): ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/** Throws for a prompt after which not even one token can be sampled. */
export function checkRoom(task: Pick<Task, 'prompt'>, { renderer, contextLength }: Room): void {
  const { length } = promptTokens(task, renderer);
  if (length === 0) throw new Error('the prompt has no tokens; give some text');
  if (length < contextLength) return;
  throw new Error(
    `the prompt has ${length} tokens and the model sees ${contextLength}, which leaves no room for the response; shorten it`,
  );
}
