import { describe, expect, it } from 'vitest';
import { chain, recorder, turn } from '../../tests/support/trajectories.ts';
import { toTrajectories } from '../episode/trajectory.ts';
import { attemptsOf } from './attempts.ts';

/** root ─ a(2) ─┬─ b(1)
 *               └─ c(3) ─┬─ d(1)
 *                        └─ e(2)   */
function tree() {
  const record = recorder({ id: 'tree', group: 'g' });
  const a = turn(record, record.feed(-1, 'prompt', Int32Array.of(1)), { tokens: 2, reward: 1, environment: 1 });
  turn(record, a, { tokens: 1, reward: 10 });
  const c = turn(record, a, { tokens: 3, reward: 2, environment: 2 });
  turn(record, c, { tokens: 1, reward: 20 });
  turn(record, c, { tokens: 2, reward: 30 });
  return toTrajectories(record.finish({ kind: 'done' }));
}

describe('attemptsOf', () => {
  it('reduces a chain to its policy tokens, cut into turns', () => {
    const { attempts } = attemptsOf([
      chain({
        id: 'x',
        turns: [
          { tokens: 2, reward: 1, environment: 4, stateKey: 's' },
          { tokens: 3, reward: 2 },
        ],
      }),
    ]);
    expect(attempts).toMatchObject([
      {
        episode: 'x',
        weight: 1,
        length: 5,
        turns: [
          { start: 0, end: 2, reward: 1, stateKey: 's' },
          { start: 2, end: 5, reward: 2 },
        ],
      },
    ]);
  });

  it('parts: several rows are one attempt, each turn once, in recorded order', () => {
    const view = attemptsOf(tree(), 'parts');
    expect(view.attempts.length).toBe(1);
    expect(view.attempts[0]!.length).toBe(2 + 1 + 3 + 1 + 2);
    expect(view.attempts[0]!.turns.map(t => t.reward)).toEqual([1, 10, 2, 20, 30]);
    const rows = view.scatter([Float64Array.of(0, 1, 2, 3, 4, 5, 6, 7, 8)]);
    expect(rows.map(row => [...row])).toEqual([
      [0, 1, 2],
      [0, 1, 3, 4, 5, 6],
      [0, 1, 3, 4, 5, 7, 8],
    ]);
    expect([...view.gather('x', rows)[0]!]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('alternatives: each leaf is an attempt, and the leaves of an episode weigh 1 together', () => {
    const { attempts } = attemptsOf(tree(), 'alternatives');
    expect(attempts.map(attempt => attempt.weight)).toEqual([0.5, 0.25, 0.25]);
    expect(attempts.map(attempt => attempt.turns.map(t => t.reward))).toEqual([
      [1, 10],
      [1, 2, 20],
      [1, 2, 30],
    ]);
  });

  it('makes a turn without reward of tokens that belong to no step', () => {
    const record = recorder();
    const prompt = record.feed(-1, 'prompt', Int32Array.of(1));
    record.sampled(prompt, {
      tokens: Int32Array.of(1, 2),
      logprobs: Float32Array.of(-1, -1),
      versions: new Int32Array(2),
    });
    const view = attemptsOf(toTrajectories(record.finish({ kind: 'truncated', reason: 'tokens' })));
    expect(view.attempts[0]!.turns).toMatchObject([{ start: 0, end: 2, reward: 0 }]);
  });

  it('refuses failed episodes, rewards that are not finite and arrays that do not fit', () => {
    const failed = { kind: 'failed', failure: 'tool', message: 'no disk', step: 0 } as const;
    expect(() => attemptsOf([chain({ id: 'f', turns: [{ tokens: 1 }], outcome: failed })])).toThrow(
      "episode 'f' failed (no disk) and cannot be trained on",
    );
    expect(() => attemptsOf([chain({ id: 'n', turns: [{ tokens: 1, reward: Number.NaN }] })])).toThrow(
      "episode 'n' has the reward NaN",
    );
    const view = attemptsOf([chain({ turns: [{ tokens: 1 }] })]);
    expect(() => view.gather('values', [])).toThrow('values: 0 arrays for 1 trajectories');
    expect(() => view.gather('values', [new Float32Array(2)])).toThrow('has 1 policy tokens, got 2 values');
  });
});
