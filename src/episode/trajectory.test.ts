import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recorded, VOCABULARY } from '../../tests/support/episodes.ts';
import { EpisodeRecorder, leaves, path } from './episode.ts';
import { policyTokenCount, SOURCE, toTrajectories } from './trajectory.ts';
import { validateEpisode, validateTrajectory } from './validate.ts';

const task = { id: 't', prompt: 'p', label: '', metadata: {} };

describe('toTrajectories', () => {
  it('flattens a tree by its leaves and counts who shares a token', () => {
    const recorder = new EpisodeRecorder({ id: 'e', task, group: 'g', sample: 3 });
    const root = recorder.feed(-1, 'prompt', Int32Array.of(1, 2));
    const generation = (...tokens: number[]) => ({
      tokens: Int32Array.from(tokens),
      logprobs: new Float32Array(tokens.length).fill(-0.5),
      versions: new Int32Array(tokens.length).fill(4),
    });
    const first = recorder.sampled(root, generation(3));
    const second = recorder.sampled(root, generation(5, 6));
    recorder.feed(first, 'environment', Int32Array.of(4));
    recorder.step({ segment: second, reward: 2, finishReason: 'stop' });
    const [a, b] = toTrajectories(recorder.finish({ kind: 'done' }));
    expect(a).toMatchObject({ episode: 'e', task: 't', group: 'g', sample: 3, leaf: second, score: 2 });
    expect([...a!.tokens]).toEqual([1, 2, 5, 6]);
    expect([...a!.sources]).toEqual([SOURCE.prompt, SOURCE.prompt, SOURCE.policy, SOURCE.policy]);
    expect([...a!.logprobs]).toEqual([Number.NaN, Number.NaN, -0.5, -0.5]);
    expect([...a!.versions]).toEqual([-1, -1, 4, 4]);
    expect([...a!.shared]).toEqual([2, 2, 1, 1]);
    expect(a!.steps).toEqual([{ segment: second, reward: 2, finishReason: 'stop', start: 2, end: 4 }]);
    expect([...b!.tokens]).toEqual([1, 2, 3, 4]);
    expect(b!.steps).toEqual([]);
    expect([policyTokenCount(a!), policyTokenCount(b!)]).toEqual([2, 1]);
  });

  it.each([true, false])('gives what the sampler saw, for any interleaving (chain: %s)', chain => {
    fc.assert(
      fc.property(recorded({ chain }), ({ episode, seen }) => {
        validateEpisode(episode, { vocabularySize: VOCABULARY });
        const trajectories = toTrajectories(episode);
        if (chain) expect(trajectories).toHaveLength(1);
        expect(trajectories.map(({ leaf }) => leaf)).toEqual(leaves(episode.segments));
        for (const trajectory of trajectories) {
          validateTrajectory(trajectory, { vocabularySize: VOCABULARY });
          expect([...trajectory.tokens]).toEqual(seen[trajectory.leaf]);
          for (const { segment, start } of trajectory.steps) {
            const parent = episode.segments[segment]!.parent;
            expect([...trajectory.tokens.subarray(0, start)]).toEqual(seen[parent]);
          }
        }
      }),
    );
  });

  it('never lets a mask cover a token that was fed', () => {
    fc.assert(
      fc.property(recorded(), ({ episode }) => {
        for (const trajectory of toTrajectories(episode)) {
          const sources = path(episode.segments, trajectory.leaf).flatMap(id => {
            const { source, tokens } = episode.segments[id]!;
            return Array.from(tokens, () => source);
          });
          const sampled = sources.map(source => source === 'policy');
          expect(Array.from(trajectory.sources, code => code === SOURCE.policy)).toEqual(sampled);
          expect(Array.from(trajectory.logprobs, value => !Number.isNaN(value))).toEqual(sampled);
          expect(Array.from(trajectory.versions, value => value >= 0)).toEqual(sampled);
          expect(policyTokenCount(trajectory)).toBe(sampled.filter(Boolean).length);
          for (const { start, end } of trajectory.steps) expect(sampled.slice(start, end)).not.toContain(false);
        }
      }),
    );
  });

  it('counts every segment once for each leaf that shares it', () => {
    fc.assert(
      fc.property(recorded(), ({ episode }) => {
        const unique = toTrajectories(episode).reduce(
          (sum, { shared }) => sum + shared.reduce((inner, count) => inner + 1 / count, 0),
          0,
        );
        const stored = episode.segments.reduce((sum, { tokens }) => sum + tokens.length, 0);
        expect(unique).toBeCloseTo(stored, 9);
      }),
    );
  });
});
