import { describe, expect, it } from 'vitest';
import { attemptsOf } from '../src/algorithms/attempts.ts';
import { overlongPenalty, splitReward, stopProperly } from '../src/algorithms/penalties.ts';
import { type Episode, episodeReward, type FinishReason } from '../src/episode/episode.ts';
import { parseEpisode, serializeEpisode } from '../src/episode/serialize.ts';
import { toTrajectories } from '../src/episode/trajectory.ts';
import { turnRows } from '../src/training/turn-rows.ts';
import { recorder, turn } from './support/trajectories.ts';

/** root ─ a(2; 1) ─┬─ b(1; 10)
 *                  └─ c(3; 2) ─┬─ d(1; 20)
 *                              └─ e(2; 30)      tokens; reward */
function searched(leaves: 'parts' | 'alternatives' = 'alternatives', last: FinishReason = 'stop'): Episode {
  const record = recorder({ id: 'tree', group: 'g' });
  const a = turn(record, record.feed(-1, 'prompt', Int32Array.of(1)), { tokens: 2, reward: 1, environment: 1 });
  turn(record, a, { tokens: 1, reward: 10 });
  const c = turn(record, a, { tokens: 3, reward: 2, environment: 2 });
  turn(record, c, { tokens: 1, reward: 20 });
  turn(record, c, { tokens: 2, reward: 30 });
  record.steps.at(-1)!.finishReason = last;
  return record.finish({ kind: 'done' }, { leaves });
}

describe('an episode whose leaves are alternatives', () => {
  it('is worth the mean of its leaves, each branch point sharing out its weight', () => {
    // 1 + (10 + (2 + (20 + 30) / 2)) / 2
    expect(episodeReward(searched())).toBe(1 + (10 + 2 + 25) / 2);
    expect(searched().score).toBe(episodeReward(searched()));
    expect(episodeReward(searched('parts'))).toBe(63);
  });

  it('is several attempts to every estimator, unless an option says otherwise', () => {
    const rows = toTrajectories(searched());
    expect(attemptsOf(rows).attempts.map(({ weight }) => weight)).toEqual([0.5, 0.25, 0.25]);
    expect(attemptsOf(rows, 'parts').attempts).toHaveLength(1);
    expect(attemptsOf(toTrajectories(searched('parts'))).attempts).toHaveLength(1);
  });

  it('is written and read back as such', () => {
    expect(parseEpisode(serializeEpisode(searched())).leaves).toBe('alternatives');
    const { leaves: _, ...chain } = searched();
    expect(parseEpisode(serializeEpisode(chain)).leaves).toBeUndefined();
  });

  it('is penalised path by path', () => {
    // Policy tokens of the paths: 3, 6, 7; the penalty begins above 5 and is full at 7.
    const penalised = overlongPenalty({ maxTokens: 7, buffer: 2 })(searched());
    expect(penalised.steps.map(({ reward }) => reward)).toEqual([1, 10, 2, 19.5, 29]);
    const none = searched();
    expect(overlongPenalty({ maxTokens: 9, buffer: 2 })(none)).toBe(none);
    const cut = searched('alternatives', 'length');
    expect(stopProperly(0.5)(cut).steps.map(({ reward }) => reward)).toEqual([1, 10, 2, 20, 15]);
    expect(stopProperly(-1)(cut).steps.map(({ reward }) => reward)).toEqual([1, 10, 2, 20, -1]);
  });

  it('is refused where turns stand alone', () => {
    expect(() => splitReward('uniform')(searched())).toThrow(/comes from a search/);
    expect(() => turnRows(toTrajectories(searched()))).toThrow(/leave train\.turn_rows_enable out/);
  });
});
