import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recorded, VOCABULARY } from '../../tests/support/episodes.ts';
import { type Episode, EpisodeRecorder, type Segment } from './episode.ts';
import { type Trajectory, toTrajectories } from './trajectory.ts';
import { validateEpisode, validateTrajectory } from './validate.ts';

/** prompt [1 2], policy [3 4] with a step, environment [5], policy [6] with a step. */
function example(): Episode {
  const recorder = new EpisodeRecorder({
    id: 'e',
    task: { id: 't', prompt: 'p', label: '', metadata: {} },
    group: 'g',
    sample: 0,
  });
  let leaf = recorder.feed(-1, 'prompt', Int32Array.of(1, 2));
  leaf = recorder.sampled(leaf, {
    tokens: Int32Array.of(3, 4),
    logprobs: Float32Array.of(-1, -2),
    versions: Int32Array.of(0, 1),
  });
  recorder.step({ segment: leaf, reward: 0, finishReason: 'stop' });
  leaf = recorder.feed(leaf, 'environment', Int32Array.of(5));
  leaf = recorder.sampled(leaf, {
    tokens: Int32Array.of(6),
    logprobs: Float32Array.of(-3),
    versions: Int32Array.of(1),
  });
  recorder.step({ segment: leaf, reward: 1, finishReason: 'length', metrics: { m: 1 } });
  return recorder.finish({ kind: 'done' });
}

/** Replaces fields of one segment. */
const segment = (index: number, fields: Record<string, unknown>) => (episode: Episode) => ({
  ...episode,
  segments: episode.segments.map((one, i) => (i === index ? ({ ...one, ...fields } as unknown as Segment) : one)),
});
const step = (index: number, fields: Record<string, unknown>) => (episode: Episode) => ({
  ...episode,
  steps: episode.steps.map((one, i) => (i === index ? { ...one, ...fields } : one)),
});
const top = (fields: Record<string, unknown>) => (episode: Episode) => ({ ...episode, ...fields }) as Episode;
const failed = (fields: object) =>
  top({ outcome: { kind: 'failed', failure: 'tool', message: 'm', step: 0, ...fields } });

describe('validateEpisode', () => {
  it('accepts any recorded episode', () => {
    fc.assert(fc.property(recorded(), ({ episode }) => validateEpisode(episode, { vocabularySize: VOCABULARY })));
  });

  it('allows the rounding of a log-softmax and no more', () => {
    validateEpisode(segment(3, { logprobs: Float32Array.of(9e-6) })(example()));
    expect(() => validateEpisode(segment(3, { logprobs: Float32Array.of(1.1e-5) })(example()))).toThrow(/log-prob/);
  });

  it.each<[string, (episode: Episode) => Episode, RegExp]>([
    ['an id out of order', segment(1, { id: 7 }), /segment 1: id is 7/],
    ['a segment that is its own parent', segment(2, { parent: 2 }), /segment 2: parent is 2; .* before its child/],
    ['a parent below -1', segment(0, { parent: -2 }), /segment 0: parent is -2/],
    ['an unknown source', segment(0, { source: 'user' }), /segment 0: source is "user"/],
    ['tokens in a plain array', segment(0, { tokens: [1, 2] }), /segment 0: tokens are not an Int32Array/],
    ['a token beyond the vocabulary', segment(2, { tokens: Int32Array.of(VOCABULARY) }), /token 0 is 50; .*\[0, 50\)/],
    ['a negative token', segment(1, { tokens: Int32Array.of(3, -1) }), /segment 1: token 1 is -1/],
    ['missing log-probs', segment(1, { logprobs: undefined }), /segment 1: no log-probs .* for 2 tokens/],
    ['too few log-probs', segment(1, { logprobs: Float32Array.of(-1) }), /segment 1: 1 log-probs .* for 2 tokens/],
    ['too many versions', segment(3, { versions: Int32Array.of(1, 1) }), /segment 3: 2 versions .* for 1 tokens/],
    ['float64 log-probs', segment(3, { logprobs: Float64Array.of(-1) }), /segment 3: .* log-probs \(Float32Array\)/],
    ['a NaN log-prob', segment(1, { logprobs: Float32Array.of(-1, NaN) }), /log-prob of token 1 is NaN/],
    ['an impossible log-prob', segment(1, { logprobs: Float32Array.of(-Infinity, -1) }), /token 0 is -Infinity/],
    ['a positive log-prob', segment(1, { logprobs: Float32Array.of(0.5, -1) }), /log-prob of token 0 is 0.5/],
    ['a missing version', segment(1, { versions: Int32Array.of(0, -1) }), /version of token 1 is -1/],
    ['log-probs of fed tokens', segment(2, { logprobs: Float32Array.of(-1) }), /a environment segment has logprobs/],
    ['versions of fed tokens', segment(0, { versions: Int32Array.of(0, 0) }), /a prompt segment has versions/],
    ['an answer to nothing', segment(1, { parent: -1 }), /segment 1: sampled tokens with no token before them/],
    ['a step on a prompt', step(0, { segment: 0 }), /step 0: segment 0 is a prompt segment/],
    ['a step on nothing', step(1, { segment: 9 }), /step 1: segment 9 is missing/],
    ['two steps on one answer', step(1, { segment: 1 }), /step 1: segment 1 has a step already/],
    ['a NaN reward', step(0, { reward: NaN }), /step 0: reward is NaN; must be finite/],
    ['a reward in text', step(0, { reward: '1' }), /step 0: reward is "1"/],
    ['a NaN token reward', step(0, { tokenRewards: [1, NaN] }), /step 0: token reward 1 is NaN; must be finite/],
    ['too few token rewards', step(0, { tokenRewards: [1] }), /step 0: 1 token rewards for the 2 tokens of segment 1/],
    ['an unknown finish reason', step(1, { finishReason: 'eos' }), /step 1: finish reason is "eos"/],
    ['a NaN step metric', step(1, { metrics: { m: NaN } }), /step 1: metric m is NaN/],
    ['an infinite score', top({ score: Infinity }), /score is Infinity/],
    ['a NaN metric', top({ metrics: { calls: NaN } }), /metric calls is NaN/],
    ['a negative sample', top({ sample: -1 }), /sample is -1/],
    ['an unknown outcome', top({ outcome: { kind: 'won' } }), /outcome is \{"kind":"won"\}/],
    ['an unknown limit', top({ outcome: { kind: 'truncated', reason: 'time' } }), /truncated by "time"/],
    ['an unknown failure class', failed({ failure: 'network' }), /failure class is "network"/],
    ['a failure without words', failed({ message: '' }), /failure without a message/],
    ['a failure in no step', failed({ step: undefined }), /failed at step nothing/],
    ['a failure after the last step', failed({ step: 3 }), /failed at step 3; the episode has 2 steps/],
  ])('catches %s', (_, mutate, message) => {
    validateEpisode(example(), { vocabularySize: VOCABULARY });
    expect(() => validateEpisode(mutate(example()), { vocabularySize: VOCABULARY })).toThrow(message);
  });

  it('names the episode and lists what is wrong, not without end', () => {
    const logprobs = new Float32Array(100).fill(Number.NaN);
    const broken = segment(1, { tokens: new Int32Array(100), logprobs, versions: new Int32Array(100) })(example());
    expect(() => validateEpisode(broken)).toThrow(/^episode "e" is not valid: .* token 7 is NaN.*; and 92 more$/);
  });
});

describe('validateTrajectory', () => {
  const t = () => toTrajectories(example())[0]!;
  /** Sets one element of a per-token array. */
  const put = (key: 'tokens' | 'sources' | 'logprobs' | 'versions' | 'shared', at: number, value: number) => () => {
    const trajectory = t();
    trajectory[key][at] = value;
    return trajectory;
  };
  const steps = (fields: object) => () => ({
    ...t(),
    steps: t().steps.map((s, i) => (i === 1 ? { ...s, ...fields } : s)),
  });

  it.each<[string, () => Trajectory, RegExp]>([
    ['arrays of different lengths', () => ({ ...t(), versions: new Int32Array(5) }), /5 versions for 6 tokens/],
    ['a fed token with a log-prob', put('logprobs', 4, -1), /token 4: log-prob is -1; not sampled, so NaN/],
    ['a fed token with a version', put('versions', 0, 0), /token 0: version is 0; not sampled, so -1/],
    ['a sampled token without log-prob', put('logprobs', 2, Number.NaN), /token 2: log-prob is NaN; must be finite/],
    ['a sampled token without version', put('versions', 5, -1), /token 5: version is -1; must be >= 0/],
    ['a fed token marked as sampled', put('sources', 4, 1), /token 4: log-prob is NaN/],
    ['an unknown source', put('sources', 4, 3), /token 4: source code is 3/],
    ['a token of no leaf', put('shared', 1, 0), /token 1: shared by 0 leaves/],
    ['a foreign token', put('tokens', 1, VOCABULARY), /token 1 is 50/],
    ['a step over fed tokens', steps({ start: 4 }), /step 1: covers tokens the policy did not sample in \[4, 6\)/],
    ['a step beyond the end', steps({ end: 7 }), /step 1: covers \[5, 7\); must lie in \[4, 6\)/],
    ['a step inside another', steps({ start: 3, end: 4 }), /step 1: covers \[3, 4\)/],
    ['a NaN reward', steps({ reward: Number.NaN }), /step 1: reward is NaN/],
    ['a NaN score', () => ({ ...t(), score: Number.NaN }), /score is NaN/],
  ])('catches %s', (_, mutated, message) => {
    validateTrajectory(t(), { vocabularySize: VOCABULARY });
    expect(() => validateTrajectory(mutated(), { vocabularySize: VOCABULARY })).toThrow(message);
  });

  it('catches a sampled token with nothing before it', () => {
    const recorder = new EpisodeRecorder(example());
    const tokens = Int32Array.of(1);
    recorder.sampled(-1, { tokens, logprobs: Float32Array.of(-1), versions: Int32Array.of(0) });
    const [trajectory] = toTrajectories(recorder.finish({ kind: 'done' }));
    expect(() => validateTrajectory(trajectory!)).toThrow('episode "e", leaf 0 is not valid: token 0 is sampled');
  });
});
