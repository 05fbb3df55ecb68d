import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { multiTurn } from '../../src/agents/multi-turn.ts';
import { reinforceBaseline } from '../../src/algorithms/recipes.ts';
import { failureLedger } from '../../src/tracking/ledger.ts';
import { type TrainOptions, train } from '../../src/train.ts';
import type { TrainStep } from '../../src/training/loop.ts';
import { abcPolicy } from '../support/abc-policy.ts';

/**
 * Environments and rewards that hang, throw or return garbage, in one of a hundred episodes, in one of ten, in all.
 * Failed episodes are counted and never trained on; below rollout.max_failure_rate the run ends well, above it it stops.
 */

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'episodes-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const FAULTS = {
  throws: () => {
    throw new Error('no power');
  },
  'returns garbage': () => 'forty-two' as never,
  hangs: () => new Promise<never>(() => undefined),
};
type Fault = keyof typeof FAULTS;
/** The class that is blamed. */
const CLASS = { throws: undefined, 'returns garbage': undefined, hangs: 'timeout' } as const;

/** An agent of which every n-th episode goes wrong, and how many did. */
function faulty(side: 'environment' | 'reward', fault: Fault, every: number) {
  const counts = { episodes: 0, failed: 0 };
  const goesWrong = () => {
    counts.episodes += 1;
    if (counts.episodes % every !== 0) return false;
    counts.failed += 1;
    return true;
  };
  const score = (text: string) => (text.startsWith('a') ? 1 : 0);
  const parts: Pick<TrainOptions, 'agent' | 'reward'> =
    side === 'reward'
      ? { reward: ({ text }) => (goesWrong() ? FAULTS[fault]() : score(text)) }
      : {
          agent: multiTurn(() => ({
            reset: ({ prompt }) => ({ observation: prompt }),
            step: ({ actionText }) => (goesWrong() ? FAULTS[fault]() : { reward: score(actionText), done: true }),
          })),
        };
  return { counts, parts };
}

const cases = (['environment', 'reward'] as const).flatMap(side =>
  (Object.keys(FAULTS) as Fault[]).flatMap(fault => [100, 10, 1].map(every => ({ side, fault, every }))),
);

describe.each(cases)('$side that $fault in one of $every episodes', ({ side, fault, every }) => {
  it(every === 1 ? 'stops the run' : 'is counted, and the run ends well', async () => {
    const { counts, parts } = faulty(side, fault, every);
    const { engine, bigram } = abcPolicy();
    const ledger = await failureLedger(join(directory, 'failures.json'));
    const steps: TrainStep[] = [];
    const run = async () => {
      const options: TrainOptions = {
        ...parts,
        policy: engine,
        tasks: Array.from({ length: 8 }, (_, i) => ({ prompt: `say ${i}:`, label: '' })),
        algorithm: reinforceBaseline(),
        groupSize: 4,
        groupsPerStep: 8,
        steps: 4,
        optimizer: { learningRate: 2 },
        // A hanging call is given up after this; the others answer in the same tick.
        limits: { maxNewTokens: 4, callTimeoutMs: 200 },
        checkpoints: { directory: join(directory, 'checkpoints'), every: 2 },
        trackers: [ledger],
      };
      for await (const step of train(options)) steps.push(step);
    };
    const blamed = CLASS[fault] ?? side;
    if (every === 1) {
      const account = fault === 'throws' ? 'no power' : fault === 'hangs' ? 'no answer within 200 ms' : 'forty-two';
      await expect(run()).rejects.toThrow(
        new RegExp(`training stopped at step 1: 32 of 32 episodes failed.*\n.*32 x ${blamed}: .*${account}`),
      );
      expect(ledger.entries).toMatchObject({ [blamed]: { count: 32, first: { step: 1, phase: 'train' } } });
      // No step was done, so there is nothing to keep.
      expect(readdirSync(directory)).toEqual(['failures.json']);
      return;
    }
    await run();
    expect(steps.map(({ index }) => index)).toEqual([1, 2, 3, 4]);
    expect(counts).toEqual({ episodes: 128, failed: Math.floor(128 / every) });
    expect(ledger.entries).toMatchObject({ [blamed]: { count: counts.failed } });
    expect(Object.keys(ledger.entries)).toEqual([blamed]);
    const trained = steps.map(({ metrics }) => metrics['rollout/num_samples']!);
    expect(trained.reduce((sum, count) => sum + count, 0)).toBe(128 - counts.failed);
    expect(bigram.probabilities(':'.charCodeAt(0)).every(Number.isFinite)).toBe(true);
    expect(readdirSync(join(directory, 'checkpoints')).sort()).toEqual(['step-00000002', 'step-00000004']);
  });
});
