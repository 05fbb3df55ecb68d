import pc from 'picocolors';
import type { Episode, Outcome, Source, Step } from '../episode/episode.ts';

export interface PrintOptions {
  /** Text of tokens, special tokens included. */
  readonly decode: (tokens: Int32Array) => string;
  readonly color: boolean;
}

const MARK: Record<Source, string> = { prompt: '  ', policy: '> ', environment: '< ' };

/** An episode for people: each segment with a mark for its source (`>` the policy's own words), rewards, outcome. */
export function printEpisode(episode: Episode, { decode, color }: PrintOptions): string {
  const colors = pc.createColors(color);
  const paint: Record<Source, (text: string) => string> = {
    prompt: colors.dim,
    policy: colors.bold,
    environment: colors.cyan,
  };
  const steps = new Map(episode.steps.map(step => [step.segment, step]));
  const lines = episode.segments.flatMap(({ id, parent, source, tokens }) => {
    const branch = parent !== id - 1 ? [colors.dim(`  (continues segment ${parent})`)] : [];
    const text = decode(tokens)
      .replace(/\n+$/, '')
      .split('\n')
      .map((line, at) => `${at === 0 ? MARK[source] : '  '}${paint[source](line)}`);
    const step = steps.get(id);
    return [...branch, ...text, ...(step && tells(step) ? [colors.dim(`  ${describeStep(step)}`)] : [])];
  });
  const heading = `${episode.id}: ${describeOutcome(episode.outcome)}, score ${round(episode.score)}`;
  return [colors.underline(heading), ...lines].join('\n');
}

function tells({ reward, finishReason }: Step): boolean {
  return reward !== 0 || finishReason !== 'stop';
}

function describeStep({ reward, finishReason }: Step): string {
  return `reward ${round(reward)}${finishReason === 'stop' ? '' : `, ended by ${finishReason}`}`;
}

function describeOutcome(outcome: Outcome): string {
  if (outcome.kind === 'rejected') return `rejected (${outcome.reason})`;
  if (outcome.kind === 'truncated') return `truncated (${outcome.reason})`;
  return outcome.kind === 'failed' ? `failed (${outcome.failure}: ${outcome.message})` : 'done';
}

function round(value: number): string {
  return String(Number(value.toFixed(3)));
}
