import type { RewardFunction } from '../contracts.ts';
import { Batcher } from './batcher.ts';
import type { Scorer } from './scorer.ts';

export interface ModelRewardOptions {
  readonly scorer: Scorer;
  /** Answers scored together at most, of all episodes; 64 when not given. With 1 no score depends on its company. */
  readonly maxBatch?: number | undefined;
  /** How long an answer waits for others while nothing is being scored, in milliseconds; 2 when not given. */
  readonly maxWaitMs?: number | undefined;
}

/** What a reward model says of each answer behind its prompt is its reward. */
export function modelReward({ scorer, maxBatch = 64, maxWaitMs = 2 }: ModelRewardOptions): RewardFunction {
  const batcher = new Batcher(scorer, { maxBatch, maxWaitMs, maxQueue: Number.MAX_SAFE_INTEGER });
  return batch => {
    for (const { signal } of batch) signal.throwIfAborted();
    return batcher.all(batch.map(({ query }) => query));
  };
}
