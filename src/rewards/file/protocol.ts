import type { RewardInput, RewardOutput } from '../contracts.ts';

/** What an answer is for a reward in a thread: all but what cannot be copied. */
export type SentInput = Omit<RewardInput, 'signal'>;

export type ToThread =
  | { readonly type: 'call'; readonly id: number; readonly batch: readonly SentInput[] }
  /** Nobody waits for it any more. */
  | { readonly type: 'abort'; readonly id: number }
  | { readonly type: 'ping' };

export type FromThread =
  | { readonly type: 'ready' }
  /** The file cannot be used; `unparsed`: its syntax is wrong. */
  | { readonly type: 'refused'; readonly message: string; readonly unparsed: boolean }
  | { readonly type: 'begun'; readonly id: number }
  | { readonly type: 'result'; readonly id: number; readonly scores: readonly (number | RewardOutput)[] }
  | { readonly type: 'failed'; readonly id: number; readonly error: Error }
  | { readonly type: 'pong' };
