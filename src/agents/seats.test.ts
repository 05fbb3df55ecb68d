import { describe, expect, it } from 'vitest';
import { abcPolicy } from '../../tests/support/abc-policy.ts';
import { groupNorm } from '../algorithms/advantages/group.ts';
import { attemptsOf } from '../algorithms/attempts.ts';
import { splitReward } from '../algorithms/penalties.ts';
import { grpo } from '../algorithms/recipes.ts';
import { nim, nimPlayer } from '../envs/games/nim.ts';
import { parseEpisode, serializeEpisode } from '../episode/serialize.ts';
import { toTrajectories } from '../episode/trajectory.ts';
import { validateEpisode } from '../episode/validate.ts';
import { testContext } from '../testing/executor-context.ts';
import { train } from '../train.ts';
import { type Seat, seats } from './seats.ts';

const task = { id: 't', prompt: '', label: '5', metadata: {} };

async function run(moves: readonly string[], seat: Record<string, Seat>, sample = 0, label = '5') {
  const context = testContext({ answers: (_, i) => moves[i]!, sample });
  const episode = await seats({ game: nim, seats: seat }).run({ ...task, label }, context);
  validateEpisode(episode);
  return { episode, context, text: (tokens: ArrayLike<number>) => context.renderer.decode(tokens) };
}
const selfPlay = { first: 'policy', second: 'policy' } as const;

describe('several seats', () => {
  it('record the view of each as a path of its own, with its own rewards', async () => {
    const { episode, text } = await run(['1', '2', '1', '1'], selfPlay);
    const rows = toTrajectories(episode);
    expect(rows.map(({ tokens }) => text(tokens))).toEqual(['5>12>1', '4>21>1']);
    expect(rows.map(({ steps }) => steps.map(({ seat, reward }) => [seat, reward]))).toEqual([
      [
        ['first', 0],
        ['first', -1],
      ],
      [
        ['second', 0],
        ['second', 1],
      ],
    ]);
    expect(episode.metrics).toEqual({ turns: 4, reward_first: -1, reward_second: 1, allowed: 1 });
    expect(parseEpisode(serializeEpisode(episode))).toEqual(episode);
  });

  it('are compared with the same seat of the other episodes', async () => {
    const won = await run(['1', '2', '2'], selfPlay, 0);
    const lost = await run(['1', '2', '1', '1'], selfPlay, 1);
    const rows = [won, lost].flatMap(({ episode }) => toTrajectories(episode));
    expect(attemptsOf(rows).attempts.map(({ group, turns }) => [group, turns.map(({ reward }) => reward)])).toEqual([
      ['group [second]', [-1]],
      ['group [first]', [0, 1]],
      ['group [first]', [0, -1]],
      ['group [second]', [0, 1]],
    ]);
    const { advantages } = groupNorm({ epsilon: 0 }).estimate({ trajectories: rows });
    const signs = advantages.map(row => [...new Set(row.map(Math.sign))]);
    expect(signs).toEqual([[-1], [1], [-1], [1]]);
    expect(() => splitReward('uniform')(won.episode)).toThrow(/several seats/);
  });

  it('of a fixed player leave no token to train on', async () => {
    const { episode, text } = await run(['1', '1'], { first: 'policy', second: nimPlayer }, 0, '6');
    expect(toTrajectories(episode).map(({ tokens }) => text(tokens))).toEqual(['6>14>1']);
    // 6 − 1 leaves 5, the player leaves 4, then 3, of which it takes all.
    expect(episode.steps.map(({ seat, reward }) => [seat, reward])).toEqual([
      ['first', 0],
      ['first', -1],
    ]);
    expect(episode.score).toBe(0);
  });

  it('may be those of another policy', async () => {
    const other = testContext({ answers: () => '1' });
    const { episode } = await run(['1', '1'], { first: 'policy', second: { policy: other.policy } }, 0, '3');
    expect(other.sampler.requests.map(({ tokens }) => other.renderer.decode(tokens))).toEqual(['2>']);
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 1]);
    expect(episode.segments.every(({ source, parent }) => source !== 'prompt' || parent === -1)).toBe(true);
  });

  it('must have a policy, and be those that the game names', async () => {
    expect(() => seats({ game: nim, seats: { first: nimPlayer } })).toThrow(/no seat is the policy's/);
    const { episode } = await run(['1'], { first: 'policy' });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment', message: /seat "second"/ });
  });

  it('ends when the turns are used up', async () => {
    const context = testContext({ answers: () => '1', limits: { maxTurns: 2 } });
    const episode = await seats({ game: nim, seats: selfPlay }).run(task, context);
    expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'turns' });
  });

  it('learn from what each of them earned', async () => {
    // A game of one move each: the first seat earns by an a, the second by a b, in the same group.
    const game = () => ({
      reset: () => ({ observations: { one: '1', two: '2' }, next: 'one' }),
      step: ({ seat, actionText }: { seat: string; actionText: string }) => ({
        rewards: { [seat]: actionText.startsWith(seat === 'one' ? 'a' : 'b') ? 1 : 0 },
        done: seat === 'two',
        next: 'two',
      }),
    });
    const { engine, bigram } = abcPolicy();
    const agent = seats({ game, seats: { one: 'policy', two: 'policy' } });
    const tasks = Array.from({ length: 8 }, (_, i) => ({ prompt: `${i}` }));
    const limits = { maxNewTokens: 1 };
    const options = { policy: engine, agent, tasks, limits, algorithm: grpo(), optimizer: { learningRate: 2 } };
    for await (const _ of train({ ...options, groupSize: 4, groupsPerStep: 8, steps: 20 }));
    const [a, b] = [bigram.probabilities(49)[97]!, bigram.probabilities(50)[98]!];
    expect(Math.min(a, b)).toBeGreaterThan(0.7);
  });
});
