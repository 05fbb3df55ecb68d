import { describe, expect, it } from 'vitest';
import { chainEpisode } from '../../tests/support/trajectories.ts';
import type { Episode } from '../episode/episode.ts';
import { episodeReward } from '../episode/episode.ts';
import { type Curation, curate, notRemoved } from './curation.ts';
import { overlongPenalty, splitReward, stopProperly } from './penalties.ts';

const episode = (id: string, rewards: readonly number[], tokens = 2): Episode =>
  chainEpisode({ id, turns: rewards.map(reward => ({ tokens, reward, environment: 5 })) });
const named = (name: string, ids: readonly string[], effect: 'mask' | 'remove') => ({
  name,
  effect,
  finds: ({ id }: Episode) => ids.includes(id),
});
const ids = (groups: readonly { readonly episodes: readonly Episode[] }[]) =>
  groups.map(({ episodes }) => episodes.map(({ id }) => id));

describe('curate', () => {
  const groups = [{ episodes: ['a', 'b', 'c'].map(id => episode(id, [1])) }, { episodes: [episode('d', [0])] }];

  it('changes nothing without penalties and filters', () => {
    expect(curate(groups, {}, 1)).toEqual({ groups, masked: new Set(), metrics: {} });
  });

  it('masks episodes, which stay, and removes others, which do not; removal wins', () => {
    const filters = [named('x', ['a', 'b'], 'mask'), named('y', ['b'], 'remove'), named('z', ['b'], 'mask')];
    const { groups: kept, masked, metrics } = curate(groups, { filters }, 1);
    expect(ids(kept)).toEqual([['a', 'c'], ['d']]);
    expect(masked).toEqual(new Set(['a']));
    expect(metrics).toEqual({
      filtered_x: 0.5,
      filtered_y: 0.25,
      filtered_z: 0.25,
      masked_episodes: 0.25,
      removed_episodes: 0.25,
      groups_removed: 0,
    });
    expect(notRemoved(groups[0]!.episodes, { filters }).map(({ id }) => id)).toEqual(['a', 'c']);
  });

  it('leaves out groups that become too small, and counts them', () => {
    const filters = [named('x', ['a', 'b'], 'remove')];
    const { groups: kept, metrics } = curate(groups, { filters }, 2);
    expect(ids(kept)).toEqual([]);
    expect(metrics.groups_removed).toBe(2);
  });

  it('applies penalties in order, to the greedy attempt too, and reports the mean change of the return', () => {
    const curation: Curation = {
      penalties: [
        // 4 tokens of the policy; the 10 of the environment do not count.
        { name: 'overlong', apply: overlongPenalty({ maxTokens: 5, buffer: 2, factor: 1 }) },
        { name: 'split', apply: splitReward('uniform') },
      ],
    };
    const long = episode('long', [1, 2], 2);
    const short = episode('short', [1, 2], 1);
    const { groups: kept, metrics } = curate([{ episodes: [long, short], greedy: long }], curation, 1);
    const [first, second] = kept[0]!.episodes as [Episode, Episode];
    expect(first.steps.map(({ reward }) => reward)).toEqual([1.25, 1.25]);
    expect(second.steps.map(({ reward }) => reward)).toEqual([1.5, 1.5]);
    expect(episodeReward(kept[0]!.greedy!)).toBe(2.5);
    expect(metrics).toEqual({ penalty_overlong: -0.25, penalty_split: 0 });
    expect(first.score).toBe(3);
  });

  it('punishes in every turn what did not stop properly', () => {
    const cut = {
      ...episode('cut', [1, 1]),
      steps: episode('cut', [1, 1]).steps.map((s, k) => ({
        ...s,
        finishReason: k === 0 ? ('length' as const) : ('stop' as const),
      })),
    };
    const penalties = [{ name: 'stop_properly', apply: stopProperly(0.5) }];
    const { groups: kept, metrics } = curate([{ episodes: [cut, episode('whole', [1, 1])] }], { penalties }, 1);
    expect(kept[0]!.episodes.map(episodeReward)).toEqual([1, 2]);
    expect(metrics.penalty_stop_properly).toBe(-0.5);
  });
});
