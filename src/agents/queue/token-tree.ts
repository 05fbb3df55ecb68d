import { type Episode, type EpisodeRecorder, path, type Segment } from '../../episode/episode.ts';

/**
 * The segment below which the policy answers when it is conditioned on exactly `tokens`: the deepest one whose context
 * they begin with, and behind it what is new, recorded as fed. Tokens that leave what was recorded inside a segment open
 * a branch at that segment's beginning; nothing sampled is ever taken over in part.
 */
export function place(recorder: EpisodeRecorder, tokens: Int32Array): number {
  const { segments } = recorder;
  let [parent, length] = [-1, 0];
  for (;;) {
    const next = segments.find(one => one.parent === parent && one.tokens.length > 0 && continues(one, tokens, length));
    if (next === undefined) break;
    [parent, length] = [next.id, length + next.tokens.length];
  }
  if (length === tokens.length && parent >= 0) return parent;
  return recorder.feed(parent, parent < 0 ? 'prompt' : 'environment', tokens.slice(length));
}

function continues({ tokens }: Segment, all: Int32Array, from: number): boolean {
  if (from + tokens.length > all.length) return false;
  return tokens.every((token, t) => token === all[from + t]);
}

/** Sampled segments whose context is exactly `tokens`. */
export function answersWith(recorder: EpisodeRecorder, tokens: Int32Array): number[] {
  return recorder.segments
    .filter(({ id, source }) => source === 'policy' && recorder.contextLength(id) === tokens.length)
    .filter(({ id }) => recorder.context(id).every((token, t) => token === tokens[t]))
    .map(({ id }) => id);
}

/** The episode with the paths to `kept` and nothing else. */
export function onlyPaths(episode: Episode, kept: ReadonlySet<number>): Episode {
  const stay = new Set([...kept].flatMap(id => path(episode.segments, id)));
  if (stay.size === episode.segments.length) return episode;
  const renamed = new Map([...stay].sort((a, b) => a - b).map((id, index) => [id, index]));
  const segments = [...renamed].map(([id, index]) => {
    const segment = episode.segments[id]!;
    return { ...segment, id: index, parent: renamed.get(segment.parent) ?? -1 };
  });
  const steps = episode.steps
    .filter(({ segment }) => stay.has(segment))
    .map(step => ({ ...step, segment: renamed.get(step.segment)! }));
  return { ...episode, segments, steps };
}
