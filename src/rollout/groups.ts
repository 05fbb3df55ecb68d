import type { EpisodeLimits, Executor, Policy } from '../agents/contracts.ts';
import type { SamplingParams } from '../engines/contracts.ts';
import { type Episode, EpisodeRecorder, type Step } from '../episode/episode.ts';
import { EpisodeError, messageOf } from '../episode/failure.ts';
import type { Task } from '../episode/task.ts';
import type { Renderer } from '../text/renderer.ts';
import type { Admission, Lane } from './admission.ts';
import type { Occurrence } from './order.ts';
import { seedOf } from './seeds.ts';

/** A group to be sampled. */
export interface GroupSpec {
  readonly task: Task;
  /** Unique in the run: the random streams of the group's episodes derive from it. */
  readonly group: string;
  /** Number of episodes, ≥ 1. */
  readonly samples: number;
  /** One more episode that takes the most probable token each time. */
  readonly greedy?: boolean | undefined;
  /** Seeds the environment of every member. */
  readonly environmentSeed: number;
}

export interface EpisodeGroup {
  readonly task: Task;
  readonly group: string;
  readonly episodes: readonly Episode[];
  /** The greedy attempt, where one was asked for; its reward is a baseline and its tokens are not trained on. */
  readonly greedy?: Episode;
  /** In (0, 1): how much its advantages count, where it is too stale to count in full. */
  readonly weight?: number;
}

/** All episodes of the groups, greedy attempts too. */
export function episodesOf(groups: readonly EpisodeGroup[]): Episode[] {
  return groups.flatMap(({ episodes, greedy }) => (greedy ? [...episodes, greedy] : episodes));
}

/** The group that attempts a task of the order. */
export function specOf(
  { task, group }: Occurrence,
  run: { readonly samples: number; readonly greedy?: boolean | undefined; readonly context: { readonly seed: number } },
): GroupSpec {
  const { samples, greedy, context } = run;
  return { task, group, samples, greedy, environmentSeed: seedOf(context.seed, 'environment', group) };
}

/** What episodes need beside their tasks. */
export interface RolloutContext {
  readonly executor: Executor;
  readonly admission: Admission;
  readonly contextLength: number;
  readonly renderer: Renderer;
  readonly params: SamplingParams;
  readonly limits: EpisodeLimits;
  /** Whether the text of an answer includes the stop string that ended it. */
  readonly includeStop?: boolean | undefined;
  /** The run's seed. */
  readonly seed: number;
  readonly signal: AbortSignal;
  readonly log: (message: string) => void;
}

/**
 * Runs all episodes of the groups at the same time. Rejects only when the context's signal aborts; an executor that
 * throws although it should not gives a failed episode.
 */
export async function runGroups(specs: readonly GroupSpec[], context: RolloutContext): Promise<EpisodeGroup[]> {
  context.signal.throwIfAborted();
  const groups = startGroups(specs, context);
  // All of them end, and are cleaned up, before an abort is passed on.
  await Promise.allSettled(groups);
  return Promise.all(groups);
}

/** Starts all episodes of the groups in one tick. Each group is given when all of its episodes have ended. */
export function startGroups(specs: readonly GroupSpec[], context: RolloutContext): Promise<EpisodeGroup>[] {
  const seats = specs.map(({ samples, greedy }) =>
    Array.from(
      { length: samples + (greedy ? 1 : 0) },
      (): Seat => ({ lane: context.admission.join(), over: new AbortController() }),
    ),
  );
  const { signal } = context;
  const stop = () => {
    for (const { over } of seats.flat()) over.abort(signal.reason);
  };
  signal.addEventListener('abort', stop, { once: true });
  const groups = specs.map((spec, i) => runGroup(spec, seats[i]!, context));
  void Promise.allSettled(groups).then(() => signal.removeEventListener('abort', stop));
  return groups;
}

async function runGroup(spec: GroupSpec, seats: readonly Seat[], context: RolloutContext): Promise<EpisodeGroup> {
  const { task, group, samples } = spec;
  const running = seats.map((seat, sample) => runEpisode(spec, sample, seat, context));
  await Promise.allSettled(running);
  const all = await Promise.all(running);
  const greedy = all[samples];
  return { task, group, episodes: all.slice(0, samples), ...(greedy && { greedy }) };
}

interface Seat {
  readonly lane: Lane;
  /** Aborts when the episode has ended or the run stops. */
  readonly over: AbortController;
}

/** Sample number `spec.samples` is the greedy attempt. */
async function runEpisode(spec: GroupSpec, sample: number, seat: Seat, training: RolloutContext): Promise<Episode> {
  const { task, group, environmentSeed } = spec;
  const { lane, over } = seat;
  const greedy = sample === spec.samples;
  const context = greedy ? { ...training, params: { ...training.params, temperature: 0 } } : training;
  const id = `${group}/${greedy ? 'greedy' : sample}`;
  try {
    const episode = await context.executor.run(task, {
      id,
      group,
      sample,
      environmentSeed,
      policy: policyOf(id, lane, context, over.signal),
      renderer: context.renderer,
      limits: context.limits,
      includeStop: context.includeStop,
      signal: over.signal,
      aside: wait => lane.aside(wait),
      log: context.log,
    });
    return withFiniteRewards(episode);
  } catch (error) {
    if (context.signal.aborted) throw context.signal.reason;
    const failure = error instanceof EpisodeError ? error.failureClass : 'environment';
    const message = `executor ${context.executor.name}: ${messageOf(error)}`;
    return new EpisodeRecorder({ id, task, group, sample }).finish({ kind: 'failed', failure, message, step: 0 });
  } finally {
    over.abort(OVER);
    lane.leave();
  }
}

/** Made once: an error takes a trace of where it was made. */
const OVER = new Error('the episode has ended');

/** The episode, failed if a reward or its score is not a finite number: whoever made it did not check. */
function withFiniteRewards(episode: Episode): Episode {
  if (episode.outcome.kind === 'failed') return episode;
  const wrong = ({ reward, tokenRewards = [] }: Step) =>
    [reward, ...tokenRewards].filter(value => !Number.isFinite(value));
  const step = episode.steps.findIndex(one => wrong(one).length > 0);
  if (step < 0 && Number.isFinite(episode.score)) return episode;
  const what = step < 0 ? `the score is ${episode.score}` : `the reward is ${wrong(episode.steps[step]!)[0]}`;
  const message = `${what}; it must be a finite number`;
  return { ...episode, outcome: { kind: 'failed', failure: 'reward', message, step: Math.max(step, 0) } };
}

/** The sampler as one episode sees it: every request gets the seed and the key of its turn. */
function policyOf(id: string, lane: Lane, context: RolloutContext, signal: AbortSignal): Policy {
  let requests = 0;
  return {
    contextLength: context.contextLength,
    params: context.params,
    async generate({ tokens, images, params, answered, signal: own, onToken }) {
      const turn = requests++;
      const generation = await lane.generate({
        tokens,
        ...(images ? { images } : {}),
        ...(answered ? { answered } : {}),
        params: { ...context.params, ...params },
        seed: seedOf(context.seed, 'sampling', id, turn),
        key: `${id}#${String(turn).padStart(6, '0')}`,
        signal: own === undefined ? signal : AbortSignal.any([signal, own]),
        ...(onToken ? { onToken } : {}),
      });
      signal.throwIfAborted();
      return generation;
    },
  };
}
