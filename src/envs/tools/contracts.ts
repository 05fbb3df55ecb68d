import type { z } from 'zod';
import type { Task } from '../../episode/task.ts';
import type { Awaitable } from '../contracts.ts';

/** What a tool is: something the policy may call by name with arguments, answered with text. */

export interface ToolContext<R = unknown> {
  /** The task of the episode that calls. */
  readonly task: Task;
  /** Identifies the episode; the same for all calls of one episode. */
  readonly episode: string;
  /** Seeds what a tool draws; the same for every member of a group. 32-bit unsigned. */
  readonly seed: number;
  /** What the tool's pool holds for this episode; undefined for a tool without one. */
  readonly resource: R;
  /** Aborts when the episode is over or the call's deadline has passed. */
  readonly signal: AbortSignal;
}

export interface ToolResult {
  /** What the policy is told. */
  readonly content: string;
  /** The call was refused or went wrong; the policy reads `content` all the same. */
  readonly failed?: boolean;
  /** The episode is over: the policy does not answer again. */
  readonly done?: boolean;
  /** Added to the step's reward; finite. */
  readonly reward?: number;
  readonly metrics?: Readonly<Record<string, number>>;
}

/** Something a tool needs that is made, kept for an episode, and given back: a sandbox, a connection, a game. */
export interface ResourceSpec<R> {
  /** Names it to rewards and in errors. */
  readonly name: string;
  create(signal: AbortSignal): Awaitable<R>;
  /** Before it is handed to another episode; one that throws is destroyed and replaced. Needed when `shared`. */
  reset?(resource: R): Awaitable<void>;
  /** False, or an error, has it replaced before it is handed out. */
  healthy?(resource: R): Awaitable<boolean>;
  destroy?(resource: R): Awaitable<void>;
}

/** Hands out resources; one holder always gets the one it has. */
export interface ResourcePool<R> {
  readonly name: string;
  acquire(holder: string, signal: AbortSignal): Promise<R>;
  /** What `holder` has, without waiting. */
  held(holder: string): R | undefined;
  /** The holder is done. */
  release(holder: string): Promise<void>;
  close(): Promise<void>;
}

export interface Tool<P extends z.ZodType = z.ZodType, R = unknown> {
  /** Letters, digits, `_` and `-`; what the policy writes. */
  readonly name: string;
  readonly description: string;
  /** A zod object; `describe()` its fields for the policy. */
  readonly parameters: P;
  readonly pool?: ResourcePool<R> | undefined;
  /** Text, a result, or any value that JSON can say. An error that is thrown is told to the policy as its message. */
  execute(args: z.output<P>, context: ToolContext<R>): Awaitable<unknown>;
  /** Deadline of one call in ms; the run's when not given. */
  readonly timeoutMs?: number | undefined;
  /** Characters of the result the policy is shown; the agent's when not given. */
  readonly maxLength?: number | undefined;
}
