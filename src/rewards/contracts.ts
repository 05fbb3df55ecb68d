import type { Awaitable } from '../envs/contracts.ts';
import type { Episode } from '../episode/episode.ts';
import type { Task } from '../episode/task.ts';

/** One finished answer to be scored. */
export interface RewardInput {
  readonly task: Task;
  /** Decoded prompt. */
  readonly prompt: string;
  /** Decoded answer, without its stop token. */
  readonly text: string;
  /** prompt + text. */
  readonly query: string;
  readonly label: string;
  /** The episode as recorded so far. */
  readonly episode: Pick<Episode, 'id' | 'group' | 'sample' | 'segments' | 'steps'>;
  /** What was called, in order; of agents with tools. */
  readonly calls?: readonly CallRecord[];
  /** What the tools' pools still hold for this episode, by name: the state that the calls left behind. */
  readonly resources?: Readonly<Record<string, unknown>>;
  /** What a recorded agent's program returned. */
  readonly result?: unknown;
  readonly signal: AbortSignal;
}

/** One tool call of an episode and what the policy was told. */
export interface CallRecord {
  /** Number of the answer that called, from 0. */
  readonly turn: number;
  /** As the policy wrote it; empty where it could not be read. */
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly content: string;
  readonly failed: boolean;
}

/**
 * Process rewards say where the reward was earned: `tokens` and `steps` stand on their tokens and steps, beside what the
 * steps earned themselves, and what they leave of the reward stands on the last token of the last step.
 */
export interface RewardOutput {
  /** Finite; all that this answer is given. The sum of `tokens` and `steps` when not given. */
  readonly reward?: number;
  /** One for each token of the last answer, the token that ended it included; finite. */
  readonly tokens?: readonly number[];
  /** One for each of the episode's steps; finite. */
  readonly steps?: readonly number[];
  /** Used for filtering; defaults to the reward. */
  readonly score?: number;
  readonly metrics?: Readonly<Record<string, number>>;
}

/** A RewardOutput whose reward is known. */
export type Scored = RewardOutput & { readonly reward: number };

/** With the sum of the process rewards as reward where none is given. */
export function totalled(output: RewardOutput): Scored {
  const { reward = sum(output.tokens) + sum(output.steps) } = output;
  return { ...output, reward };
}

function sum(values: readonly number[] = []): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Batch in, scores out, in the same order. */
export interface RewardFunction {
  (batch: readonly RewardInput[]): Awaitable<readonly (number | RewardOutput)[]>;
  /** Ends what it runs on: threads, a model. Once. */
  readonly close?: () => Promise<void>;
}

/** Makes a RewardFunction of a function that scores one answer. */
export function perSample(reward: (input: RewardInput) => Awaitable<number | RewardOutput>): RewardFunction {
  return batch => Promise.all(batch.map(input => reward(input)));
}
