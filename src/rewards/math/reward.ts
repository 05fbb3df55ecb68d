import { perSample, type RewardFunction } from '../contracts.ts';
import { beside } from '../thread.ts';
import { TIMED_OUT, WorkerPool } from './pool.ts';
import type { MathVerdict, VerifyOptions } from './verify.ts';
import type { VerifyJob } from './worker.ts';

export interface MathRewardOptions extends VerifyOptions {
  /** Milliseconds that judging one answer may take. Default 5000. */
  readonly deadlineMs?: number;
  /** Threads that judge. Default 1, which judges thousands of answers a second. */
  readonly workers?: number;
}

export interface MathReward extends RewardFunction {
  /** Ends the threads, which are started by the first answer; idle, they do not keep the process alive. */
  readonly close: () => Promise<void>;
}

/**
 * 1 when the answer that a text ends with equals the label, else 0 (`verifyMath`), judged in worker threads: an answer
 * that takes longer than the deadline is wrong, and its thread is replaced. Metrics: `answered`, `correct`, `timed_out`.
 * A verifier that fails, or a label without an answer, fails the episode.
 */
export function mathReward(options: MathRewardOptions = {}): MathReward {
  const { deadlineMs = 5000, workers = 1, ...verify } = options;
  const entry = beside(import.meta.url, 'worker');
  const pool = new WorkerPool<VerifyJob, MathVerdict>({ entry, workers, deadlineMs });
  const reward = perSample(async ({ text, label, signal }) => {
    signal.throwIfAborted();
    const verdict = await pool.run({ text, label, options: verify });
    if (verdict === TIMED_OUT) return { reward: 0, metrics: { answered: 1, correct: 0, timed_out: 1 } };
    const { correct, answered } = verdict;
    const metrics = { answered: Number(answered), correct: Number(correct), timed_out: 0 };
    return { reward: Number(correct), metrics };
  });
  return Object.assign(reward, { close: () => pool.close() });
}
