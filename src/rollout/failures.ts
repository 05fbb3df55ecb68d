import type { Episode, Outcome } from '../episode/episode.ts';
import { FAILURE_CLASSES } from '../episode/failure.ts';
import type { EpisodeGroup } from './groups.ts';

type Failed = Extract<Outcome, { kind: 'failed' }>;

/** So many episodes failed that the run must not go on. It carries them, so that they can be looked at. */
export class FailureRateError extends Error {
  override readonly name = 'FailureRateError';
  readonly phase: 'train' | 'eval';
  readonly episodes: readonly Episode[];

  constructor(message: string, of: Pick<FailureRateError, 'phase' | 'episodes'>, options?: ErrorOptions) {
    super(message, options);
    this.phase = of.phase;
    this.episodes = of.episodes;
  }
}

/** Outcomes of the episodes that failed, in order. */
export function failuresOf(episodes: readonly Episode[]): Failed[] {
  return episodes.flatMap(({ outcome }) => (outcome.kind === 'failed' ? [outcome] : []));
}

/** Throws when more than `maxRate` of the episodes failed, with the first messages of each class. */
export function checkFailureRate(
  episodes: readonly Episode[],
  maxRate: number,
  phase: FailureRateError['phase'] = 'train',
): void {
  const failures = failuresOf(episodes);
  if (failures.length === 0 || failures.length <= maxRate * episodes.length) return;
  const account = FAILURE_CLASSES.flatMap(name => {
    const of = failures.filter(({ failure }) => failure === name);
    return of.length === 0 ? [] : [`\n  ${of.length} x ${name}: ${distinct(of).join('\n    ')}`];
  });
  throw new FailureRateError(
    `${failures.length} of ${episodes.length} episodes failed, more than rollout.max_failure_rate ${maxRate} allows:${account.join('')}`,
    { phase, episodes },
  );
}

function distinct(failures: readonly Failed[], limit = 3): string[] {
  return [...new Set(failures.map(({ message }) => message))].slice(0, limit);
}

/** Number of failures by class, as metrics. */
export function failureCounts(episodes: readonly Episode[]): Record<string, number> {
  const failures = failuresOf(episodes);
  const counts: Record<string, number> = { 'rollout/failed': failures.length };
  for (const { failure } of failures) {
    const name = `rollout/failed_${failure}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  const rejected = episodes.filter(({ outcome }) => outcome.kind === 'rejected').length;
  if (rejected > 0) counts['rollout/rejected'] = rejected;
  return counts;
}

/** Whether an episode may be trained on: it did not fail, and its agent did not reject it. */
function teaches({ outcome }: Episode): boolean {
  return outcome.kind !== 'failed' && outcome.kind !== 'rejected';
}

/**
 * The groups without their failed and rejected episodes; a group with fewer than `minimum` others is left out altogether, and so is
 * one whose greedy attempt failed or was rejected.
 */
export function withoutFailures(groups: readonly EpisodeGroup[], minimum: number): EpisodeGroup[] {
  return groups
    .filter(({ greedy }) => greedy === undefined || teaches(greedy))
    .map(group => ({ ...group, episodes: group.episodes.filter(teaches) }))
    .filter(({ episodes }) => episodes.length >= minimum);
}
