import { expect, it } from 'vitest';
import { curate } from '../algorithms/curation.ts';
import { EpisodeRecorder } from '../episode/episode.ts';
import { toTask } from '../rollout/tasks.ts';
import { weighted } from './stale-weights.ts';

const groupOf = (name: string, weight?: number) => {
  const task = toTask({ prompt: name, id: name }, 0, 'set');
  const episode = new EpisodeRecorder({ id: `${name}/0`, task, group: name, sample: 0 }).finish({ kind: 'done' });
  return { task, group: name, episodes: [episode], ...(weight === undefined ? {} : { weight }) };
};
const advantages = [Float32Array.of(1, -2), Float32Array.of(4)];
const rows = [{ group: 'old' }, { group: 'new' }];

it('lets the advantages of a stale group count for less, also after its episodes were curated', () => {
  const { groups } = curate([groupOf('old', 0.5), groupOf('new')], { penalties: [] }, 1);
  expect(weighted(advantages, rows, groups)).toEqual([Float32Array.of(0.5, -1), Float32Array.of(4)]);
});

it('leaves everything as it is where nothing is stale', () => {
  expect(weighted(advantages, rows, [groupOf('old'), groupOf('new')])).toBe(advantages);
});
