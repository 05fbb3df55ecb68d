import { type Episode, episodeReward } from '../episode/episode.ts';

/** What trackers show of a step's episodes beside the means among its metrics. Failed episodes take no part. */
export interface EpisodeValues {
  readonly reward: readonly number[];
  /** Tokens that the policy sampled. */
  readonly response_length: readonly number[];
  /** Answers of the policy. */
  readonly turns: readonly number[];
}

export function episodeValues(all: readonly Episode[]): EpisodeValues {
  const episodes = all.filter(({ outcome }) => outcome.kind !== 'failed');
  return {
    reward: episodes.map(episodeReward),
    response_length: episodes.map(({ segments }) =>
      segments.reduce((n, { source, tokens }) => n + (source === 'policy' ? tokens.length : 0), 0),
    ),
    turns: episodes.map(({ steps }) => steps.length),
  };
}

/** Markdown of an episode: who said what, decoded, as text that Markdown leaves alone. */
export function episodeMarkdown(episode: Episode, decode: (tokens: Int32Array) => string): string {
  const { id, outcome, segments } = episode;
  const how = outcome.kind === 'failed' ? `failed: ${outcome.failure}` : outcome.kind;
  const said = segments.map(({ source, tokens }) => `*${source}*\n\n${asCode(decode(tokens))}`);
  return [`**${id}**: reward ${episodeReward(episode)}, ${how}`, ...said].join('\n\n');
}

/** An indented block: unlike a fence, nothing inside can end it. */
export function asCode(text: string): string {
  return text.replace(/^/gm, '    ');
}
