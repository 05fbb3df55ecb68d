import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Episode } from '../episode/episode.ts';
import { capacity, oldestVersion, PublishedVersions, stalenessMetrics, staleWeight } from './staleness.ts';

const load = { maxStaleness: 1, version: 0, batchSize: 4, accepted: 0, waiting: 0, running: 0, slots: 1000 };

/** An episode whose answers were sampled by these versions. */
function episodeOf(...answers: number[][]): Episode {
  const segments = answers.map((versions, id) => ({
    id,
    parent: id - 1,
    source: 'policy' as const,
    tokens: new Int32Array(versions.length),
    logprobs: new Float32Array(versions.length),
    versions: Int32Array.from(versions),
  }));
  return { segments } as unknown as Episode;
}

describe('capacity', () => {
  it('is (η + v + 1) · B − (accepted + running)', () => {
    expect(capacity(load)).toBe(8);
    expect(capacity({ ...load, maxStaleness: 0 })).toBe(4);
    expect(capacity({ ...load, version: 3, accepted: 13, running: 5 })).toBe((1 + 3 + 1) * 4 - 18);
    expect(capacity({ ...load, version: 0, accepted: 9 })).toBe(-1);
  });

  it('is what the queue has room for, when that is less', () => {
    expect(capacity({ ...load, slots: 6, running: 2, waiting: 1, accepted: 1 })).toBe(3);
  });

  it('keeps every group that is trained on in the order of beginning within η steps', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4 }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 60, maxLength: 200 }),
        (maxStaleness, batchSize, choices) => {
          const state = { maxStaleness, batchSize, slots: 1000, version: 0, accepted: 0, waiting: 0, running: 0 };
          const begun: number[] = [];
          let [given, most] = [0, 0];
          for (const choice of choices) {
            // Begin what may be begun; end one; train on a batch, if there is one.
            for (let room = capacity(state); choice !== 0 && room > 0; room--) {
              begun.push(state.version);
              state.running += 1;
            }
            if (choice >= 2 && state.running > 0) {
              state.running -= 1;
              state.accepted += 1;
              state.waiting += 1;
            }
            if (state.waiting >= batchSize) {
              state.waiting -= batchSize;
              for (let i = 0; i < batchSize; i++) most = Math.max(most, state.version - begun[given++]!);
              state.version += 1;
            }
          }
          expect(most).toBeLessThanOrEqual(maxStaleness);
        },
      ),
    );
  });

  it('lets a sampler that is always ahead be η steps stale', () => {
    for (const maxStaleness of [0, 1, 3]) {
      const begun: number[] = [];
      const ages: number[] = [];
      for (let version = 0; version < 8; version++) {
        const state = { ...load, maxStaleness, version, accepted: begun.length, waiting: begun.length - 4 * version };
        for (let room = capacity(state); room > 0; room--) begun.push(version);
        ages.push(version - begun[4 * version]!);
      }
      expect(ages.at(-1)).toBe(maxStaleness);
    }
  });
});

describe('PublishedVersions', () => {
  it('counts steps, however many updates each had', () => {
    const published = new PublishedVersions([0]);
    for (const version of [4, 8, 8, 9]) published.add(version);
    expect(published.versions).toEqual([0, 4, 8, 9]);
    expect([9, 8, 7, 4, 3, 0].map(version => published.age(version))).toEqual([0, 1, 2, 2, 3, 3]);
    expect(new PublishedVersions(published.versions).age(4)).toBe(2);
    expect(new PublishedVersions([8, 9]).age(0)).toBe(1);
    expect(published.age(Number.POSITIVE_INFINITY)).toBe(0);
  });
});

it('finds the oldest token of a group', () => {
  expect(oldestVersion({ episodes: [episodeOf([5, 6], [7]), episodeOf([4])] })).toBe(4);
  expect(oldestVersion({ episodes: [episodeOf()] })).toBe(Number.POSITIVE_INFINITY);
});

it('weighs by (η + 1) / (age + 1)', () => {
  expect(staleWeight(2, 2)).toBe(1);
  expect(staleWeight(5, 2)).toBe(0.5);
  expect(staleWeight(3, 0)).toBe(0.25);
});

it('measures staleness over tokens and versions over episodes', () => {
  const published = new PublishedVersions([0, 1, 2]);
  const episodes = [episodeOf([0, 0, 1], [2]), episodeOf([2, 2]), episodeOf()];
  expect(stalenessMetrics(episodes, published)).toEqual({
    staleness_mean: 5 / 6,
    staleness_max: 2,
    versions_per_sequence: 2,
    partial_rate: 0.5,
  });
  expect(stalenessMetrics([], published)).toEqual({});
});
