import { describe, expect, it } from 'vitest';
import { EpisodeRecorder, episodeReward, leaves, path } from './episode.ts';

const identity = { id: 'e', task: { id: 't', prompt: 'p', label: '', metadata: {} }, group: 'g', sample: 0 };
const ids = (...tokens: number[]) => Int32Array.from(tokens);
const generation = (...tokens: number[]) => ({
  tokens: ids(...tokens),
  logprobs: new Float32Array(tokens.length),
  versions: new Int32Array(tokens.length),
});

describe('EpisodeRecorder', () => {
  it('builds a tree whose contexts are paths from the root', () => {
    const recorder = new EpisodeRecorder(identity);
    const root = recorder.feed(-1, 'prompt', ids(1, 2));
    const left = recorder.sampled(root, generation(3));
    const right = recorder.sampled(root, generation(4, 5));
    const leaf = recorder.feed(right, 'environment', ids(6));
    expect([...recorder.context(leaf)]).toEqual([1, 2, 4, 5, 6]);
    expect([...recorder.context(left)]).toEqual([1, 2, 3]);
    expect(path(recorder.segments, leaf)).toEqual([root, right, leaf]);
    expect(leaves(recorder.segments)).toEqual([left, leaf]);
  });

  it('refuses a parent that does not exist yet', () => {
    const recorder = new EpisodeRecorder(identity);
    expect(() => recorder.feed(0, 'prompt', ids(1))).toThrow('segment 0 cannot continue segment 0');
    expect(() => recorder.sampled(-2, generation(1))).toThrow('segment 0 cannot continue segment -2');
  });

  it('adds a late reward to the last step and needs one', () => {
    const recorder = new EpisodeRecorder(identity);
    expect(() => recorder.addReward(1)).toThrow('needs a step to stand on');
    const root = recorder.feed(-1, 'prompt', ids(1));
    recorder.step({ segment: recorder.sampled(root, generation(2)), reward: 0.5, finishReason: 'stop' });
    recorder.addReward(1);
    expect(episodeReward(recorder)).toBe(1.5);
  });

  it('adds process rewards where they were earned, and the rest to the end', () => {
    const recorder = new EpisodeRecorder(identity);
    expect(recorder.places()).toEqual({ tokens: 0, steps: 0 });
    const first = recorder.sampled(recorder.feed(-1, 'prompt', ids(1)), generation(2));
    recorder.step({ segment: first, reward: 0.5, finishReason: 'stop' });
    recorder.step({ segment: recorder.sampled(first, generation(3, 4)), reward: 0, finishReason: 'stop' });
    expect(recorder.places()).toEqual({ tokens: 2, steps: 2 });
    recorder.addReward(5, { steps: [1, 2], tokens: [0.25, 0.5] });
    expect(recorder.steps).toMatchObject([{ reward: 1.5 }, { reward: 4, tokenRewards: [0.25, 0.5] }]);
    recorder.addReward(1, { tokens: [1, 0] });
    expect(recorder.steps[1]).toMatchObject({ reward: 5, tokenRewards: [1.25, 0.5] });
    expect(episodeReward(recorder)).toBe(6.5);
    expect(recorder.steps[0]).not.toHaveProperty('tokenRewards');
  });

  it('cuts the rewards of tokens where it cuts the tokens', () => {
    const recorder = new EpisodeRecorder(identity);
    const segment = recorder.sampled(recorder.feed(-1, 'prompt', ids(1)), generation(2, 3, 4));
    recorder.step({ segment, reward: 4, tokenRewards: [1, 0.5, 2], finishReason: 'length' });
    recorder.split(segment, 2);
    expect(recorder.steps).toEqual([
      { segment, reward: 1.5, tokenRewards: [1, 0.5], finishReason: 'stop' },
      { segment: 2, reward: 2.5, tokenRewards: [2], finishReason: 'length' },
    ]);
  });

  it('finishes with the sum of rewards as score unless told otherwise, apart from what is recorded later', () => {
    const recorder = new EpisodeRecorder(identity);
    const root = recorder.feed(-1, 'prompt', ids(1));
    recorder.step({ segment: recorder.sampled(root, generation(2)), reward: 0.5, finishReason: 'stop' });
    const episode = recorder.finish({ kind: 'done' });
    recorder.addReward(1);
    recorder.feed(root, 'environment', ids(3));
    expect(episode).toMatchObject({ ...identity, score: 0.5, metrics: {}, outcome: { kind: 'done' } });
    expect([episode.segments.length, episode.steps[0]!.reward]).toEqual([2, 0.5]);
    expect(recorder.finish({ kind: 'done' }, { score: 9, metrics: { m: 1 } })).toMatchObject({
      score: 9,
      metrics: { m: 1 },
    });
  });
});
