import assert from 'node:assert/strict';
import type { Environment, EnvironmentFactory, Player, Reset, StepResult } from '../envs/contracts.ts';
import type { Task } from '../episode/task.ts';

/** One episode as an executor plays it, written down. */

export type Observed = Reset['observation'];
/** Says the answer of a turn. */
export type Answers = (seen: Observed, turn: number) => string | PromiseLike<string>;
export type EpisodeRecord = readonly [Reset, ...StepResult[]];

export interface Script {
  readonly task: Task;
  readonly seed: number;
  readonly answers: Answers;
  /** At most so many answers. */
  readonly turns: number;
  readonly finishReason?: 'stop' | 'length';
  /** One that never aborts when not given. */
  readonly signal?: AbortSignal;
}

/** Plays an episode in a new environment and closes it, whatever happens. */
export async function playEpisode(make: EnvironmentFactory, script: Script): Promise<EpisodeRecord> {
  const environment = await make();
  try {
    return await resetAndPlay(environment, script);
  } finally {
    await environment.close?.();
  }
}

export async function resetAndPlay(environment: Environment, script: Script): Promise<EpisodeRecord> {
  const { task, seed, signal = new AbortController().signal } = script;
  const start = await environment.reset(task, { seed, signal });
  checkObservation(start.observation);
  return [start, ...(await playOn(environment, script, start.observation))];
}

/** Goes on from what was seen last, `turn` answers after the reset. */
export async function playOn(
  environment: Environment,
  { task, answers, turns, finishReason = 'stop', signal = new AbortController().signal }: Script,
  beginning: Observed,
  from = 0,
): Promise<StepResult[]> {
  const results: StepResult[] = [];
  let seen = beginning;
  let text = textOf(beginning);
  for (let turn = from; turn < turns; turn++) {
    const actionText = await answers(seen, turn);
    const result = await environment.step({
      actionText,
      actionTokens: new Int32Array(Buffer.from(actionText)),
      observationText: text,
      label: task.label,
      task,
      turn,
      finishReason,
      signal,
    });
    checkResult(result, turn);
    results.push(result);
    if (result.done) break;
    seen = result.feedback!;
    text += actionText + textOf(seen);
  }
  return results;
}

/** Scores of a player, of one episode for each seed from 0. The tasks take turns. */
export async function playerScores(
  subject: {
    readonly make: EnvironmentFactory;
    readonly tasks: readonly Task[];
    /** The limit of the agent where the environment has none; 32 when not given. */
    readonly maxTurns?: number | undefined;
  },
  player: Player,
  episodes = 20,
): Promise<number[]> {
  const scores: number[] = [];
  for (let seed = 0; seed < episodes; seed++) {
    const task = subject.tasks[seed % subject.tasks.length]!;
    const answers = player({ task, seed });
    scores.push(scoreOf(await playEpisode(subject.make, { task, seed, answers, turns: subject.maxTurns ?? 32 })));
  }
  return scores;
}

/** Score of an episode: the last one that was given, else the sum of its rewards. */
function scoreOf([, ...results]: EpisodeRecord): number {
  const given = results.findLast(({ score }) => score !== undefined)?.score;
  return given ?? results.reduce((sum, { reward }) => sum + reward, 0);
}

function checkObservation(observation: unknown): void {
  assert.ok(isTold(observation), `an observation is text or messages, and reset gave ${kindOf(observation)}`);
  assert.ok(observation.length > 0, 'reset gave an empty observation');
}

function checkResult(result: StepResult, turn: number): void {
  const at = `the answer of turn ${turn}`;
  assert.ok(typeof result === 'object' && result !== null, `${at} got ${kindOf(result)} and not a result`);
  const { reward, score, metrics, done, feedback, stateKey } = result;
  for (const [name, value] of Object.entries({ reward, score: score ?? 0, ...metrics })) {
    assert.ok(Number.isFinite(value), `${at} got the ${name} ${String(value)}, which is not a finite number`);
  }
  assert.equal(typeof done, 'boolean', `${at} got a done that is ${kindOf(done)} and not a boolean`);
  assert.ok(done || feedback !== undefined, `${at} got no feedback, and the episode is not done`);
  assert.ok(feedback === undefined || isTold(feedback), `${at} got ${kindOf(feedback)} for feedback`);
  assert.ok(stateKey === undefined || typeof stateKey === 'string', `${at} got a stateKey that is ${kindOf(stateKey)}`);
}

function isTold(value: unknown): value is Observed {
  if (typeof value === 'string') return true;
  const isMessage = (one: unknown) =>
    typeof one === 'object' && one !== null && 'role' in one && 'content' in one && typeof one.content === 'string';
  return Array.isArray(value) && value.every(isMessage);
}

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'an array that is not of messages' : typeof value;

const textOf = (told: Observed): string =>
  typeof told === 'string' ? told : told.map(({ content }) => content).join('\n');
