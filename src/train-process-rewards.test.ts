import { expect, it } from 'vitest';
import { abcPolicy } from '../tests/support/abc-policy.ts';
import { reinforcePlusPlus } from './algorithms/recipes.ts';
import type { RewardInput } from './rewards/contracts.ts';
import { type TrainOptions, train } from './train.ts';

const FIRST_A = 'a'.charCodeAt(0);

/** 1 for beginning with an a, taken back at the next token: every answer earns 0 in all. */
function takenBack({ episode }: RewardInput): { reward: number; tokens: number[] } {
  const tokens = episode.segments.at(-1)!.tokens;
  const first = tokens.length > 1 && tokens[0] === FIRST_A ? 1 : 0;
  return { reward: 0, tokens: Array.from(tokens, (_, t) => (t === 0 ? first : t === 1 ? -first : 0)) };
}

async function chanceOfA(reward: TrainOptions['reward']): Promise<number> {
  const { engine, bigram } = abcPolicy();
  const run = train({
    policy: engine,
    tasks: Array.from({ length: 8 }, (_, i) => ({ prompt: `say ${i}:` })),
    reward,
    // A token is told of its own reward and of none that comes after it.
    algorithm: reinforcePlusPlus({ gamma: 0, time: 'token' }),
    groupsPerStep: 8,
    groupSize: 8,
    steps: 12,
    seed: 5,
    optimizer: { learningRate: 2 },
    limits: { maxNewTokens: 2 },
  });
  for await (const { metrics } of run) expect(metrics['rollout/reward_mean']).toBe(0);
  return bigram.probabilities(':'.charCodeAt(0))[FIRST_A]!;
}

it('a reward for each token reaches its token: what answers earn in all is the same', async () => {
  expect(await chanceOfA(takenBack)).toBeGreaterThan(0.8);
  expect(await chanceOfA(input => ({ reward: 0, tokens: takenBack(input).tokens.map(() => 0) }))).toBeCloseTo(0.25, 6);
});
