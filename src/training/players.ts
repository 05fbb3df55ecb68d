import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkReset, checkStepResult } from '../agents/checks.ts';
import type { EnvironmentFactory, Player } from '../envs/contracts.ts';
import { type Episode, episodeReward } from '../episode/episode.ts';
import { boundary, EpisodeError } from '../episode/failure.ts';
import type { Task } from '../episode/task.ts';
import { mean } from '../rollout/metrics.ts';
import { seedOf } from '../rollout/seeds.ts';
import { passes } from './evaluate.ts';
import { shareInterval } from './interval.ts';

/** Environments played by anybody: scripted players without a model, and what is told of their episodes. */

/** One episode, as far as players can be compared by it. */
export interface Played {
  readonly task: Task;
  readonly score: number;
  readonly reward: number;
  readonly turns: number;
  /** Answers that could not be read or are not allowed. */
  readonly illegal: number;
  /** The metric `won` where the environment gives it, else a score of at least the pass score. */
  readonly solved: boolean;
  /** Why the episode failed; its numbers are then of no use. */
  readonly failure?: string | undefined;
}

export interface PlayOptions {
  /** Of the run: the environment of a task gets the seed that it gets in an evaluation of a model. */
  readonly seed: number;
  readonly passScore: number;
  /** Deadline of one call to the environment. */
  readonly callTimeoutMs: number;
  readonly signal: AbortSignal;
  /** Answers after which an episode is ended; for environments that never end. */
  readonly maxTurns: number;
}

/** Plays each task once. An episode that fails is one of the results; an abort of the signal rejects. */
export async function playTasks(
  make: EnvironmentFactory,
  player: Player,
  tasks: readonly Task[],
  options: PlayOptions,
): Promise<Played[]> {
  const played: Played[] = [];
  for (const task of tasks) {
    // Players and environments may both answer at once: without a pause nobody would hear of an interrupt.
    await nextTurn();
    options.signal.throwIfAborted();
    played.push(await playTask(make, player, task, options));
  }
  return played;
}

async function playTask(
  make: EnvironmentFactory,
  player: Player,
  task: Task,
  { seed: runSeed, passScore, callTimeoutMs, signal, maxTurns }: PlayOptions,
): Promise<Played> {
  const seed = environmentSeed(runSeed, task);
  const call = <T>(what: string, run: () => T | PromiseLike<T>) =>
    boundary('environment', what, run, { signal, timeoutMs: callTimeoutMs });
  const turns: Turn[] = [];
  let score: number | undefined;
  try {
    const environment = await call('making the environment', () => make());
    try {
      const answer = player({ task, seed });
      const reset = async () => checkReset(await environment.reset(task, { seed, signal }));
      let { observation: seen } = await call('environment.reset', reset);
      for (let turn = 0; turn < maxTurns; turn++) {
        const actionText = await answer(seen, turn);
        const actionTokens = new Int32Array(new TextEncoder().encode(actionText));
        const rest = { label: task.label, task, turn, finishReason: 'stop' as const, signal };
        const step = async () =>
          checkStepResult(await environment.step({ actionText, actionTokens, observationText: '', ...rest }));
        const result = await call('environment.step', step);
        turns.push(result);
        score = result.score ?? score;
        if (result.done) break;
        seen = result.feedback!;
      }
    } finally {
      await call('environment.close', () => environment.close?.());
    }
  } catch (error) {
    if (!(error instanceof EpisodeError)) throw error;
    return { ...resultOf(task, turns, score, passScore), solved: false, failure: error.message };
  }
  return resultOf(task, turns, score, passScore);
}

/** The seed that an evaluation gives to the environment of a task. */
export function environmentSeed(runSeed: number, task: Task): number {
  return seedOf(runSeed, 'environment', `eval:${task.id}`);
}

/** What is told of an episode that a model played. */
export function playedBy({ task, steps, score, outcome, ...episode }: Episode, passScore: number): Played {
  const played = resultOf(task, steps, score, passScore);
  const reward = episodeReward({ steps, ...episode });
  return outcome.kind === 'failed'
    ? { ...played, reward, solved: false, failure: outcome.message }
    : { ...played, reward };
}

interface Turn {
  readonly reward: number;
  readonly isVoid?: boolean | undefined;
  readonly metrics?: Readonly<Record<string, number>> | undefined;
}

function resultOf(task: Task, turns: readonly Turn[], given: number | undefined, passScore: number): Played {
  const reward = turns.reduce((sum, turn) => sum + turn.reward, 0);
  const score = given ?? reward;
  const wins = turns.flatMap(({ metrics }) => metrics?.won ?? []);
  const solved = wins.length > 0 ? wins.some(won => won > 0) : passes(score, passScore);
  const isIllegal = ({ isVoid, metrics }: Turn) => isVoid === true || (metrics?.invalid ?? 0) > 0;
  return { task, score, reward, turns: turns.length, illegal: turns.filter(isIllegal).length, solved };
}

/** How a player did in an environment. Means are over the episodes that did not fail; NaN when all of them did. */
export interface PlaySummary {
  readonly environment: string;
  readonly player: string;
  readonly episodes: number;
  readonly failed: number;
  /** Share of all episodes, and its 95 % interval: a failed one has not been solved. */
  readonly solved: number;
  readonly solvedLow: number;
  readonly solvedHigh: number;
  readonly score: number;
  readonly reward: number;
  readonly turns: number;
  /** Illegal answers per episode. */
  readonly illegal: number;
}

export function summarise(environment: string, player: string, played: readonly Played[]): PlaySummary {
  const finished = played.filter(({ failure }) => failure === undefined);
  const solved = played.filter(one => one.solved).length;
  const [solvedLow, solvedHigh] = shareInterval(solved, played.length);
  const meanOf = (name: 'score' | 'reward' | 'turns' | 'illegal') =>
    finished.length === 0 ? Number.NaN : mean(finished.map(one => one[name]));
  return {
    environment,
    player,
    episodes: played.length,
    failed: played.length - finished.length,
    solved: solved / played.length,
    solvedLow,
    solvedHigh,
    score: meanOf('score'),
    reward: meanOf('reward'),
    turns: meanOf('turns'),
    illegal: meanOf('illegal'),
  };
}
