import type { Environment, EnvironmentFactory, StepResult } from '../envs/contracts.ts';
import type { Outcome } from '../episode/episode.ts';
import { isThenable } from '../episode/failure.ts';
import { checkEnvironment, checked, checkReset, checkStepResult } from './checks.ts';
import type { ExecutorContext } from './contracts.ts';
import { type HistoryOptions, keeper, transcriptOf } from './folding.ts';
import { type ObservationOptions, ObservedTranscript } from './observations.ts';
import type { Answer, Begun, Session } from './session.ts';
import type { Transcript } from './transcript.ts';

/** One policy and one environment taking turns: what a chain and a search tree have in common. */

export interface TurnLimits {
  /** Answers from the beginning to the end of a path. */
  readonly maxTurns: number;
  /** Tokens per answer. */
  readonly maxNewTokens: number;
}

/** Where the policy is to answer next. */
export interface TurnState {
  readonly environment: Environment;
  readonly transcript: Transcript;
  /** Segment to answer below. */
  readonly leaf: number;
  /** Answers before it. */
  readonly turn: number;
  readonly stateKey: string | undefined;
  readonly params: NonNullable<StepResult['samplingParams']>;
}

/** What a step led to: the next state, or the end of the path. */
export type Turned = { readonly result: StepResult } & (
  | { readonly outcome: Outcome; readonly next?: never }
  | { readonly outcome?: never; readonly next: TurnState }
);

/** Limits of the agent, and of the run where the agent has none. */
export function turnLimits(
  own: { readonly [K in keyof TurnLimits]?: number | undefined },
  { limits }: Pick<ExecutorContext, 'limits'>,
): TurnLimits {
  return {
    maxTurns: own.maxTurns ?? limits.maxTurns,
    maxNewTokens: own.maxNewTokens ?? limits.maxNewTokens,
  };
}

/** Makes the environment and sees to it that it is closed, also when it is ready only after the episode has ended. */
export function makeEnvironment(session: Session, factory: EnvironmentFactory): Promise<Environment> {
  return session.call('environment', 'making the environment', async () => {
    const environment = checkEnvironment(await factory());
    if (environment.close !== undefined) session.onEnd('environment.close', () => environment.close?.());
    return environment;
  });
}

export function reset(session: Session, environment: Environment) {
  const { task, context, signal } = session;
  return session.call('environment', 'environment.reset', () =>
    checked(environment.reset(task, { seed: context.environmentSeed, signal }), checkReset),
  );
}

/** Resets the environment and records what the policy is given first. */
export async function begin(
  session: Session,
  environment: Environment,
  history: HistoryOptions & { readonly observations?: ObservationOptions | undefined } = {},
): Promise<TurnState> {
  const given = await reset(session, environment);
  const { observation, images, stateKey } = given;
  const rest = { environment, turn: 0, stateKey, params: {} };
  if (history.observations) {
    const transcript = new ObservedTranscript(
      session,
      observation,
      history.observations,
      keeper(session, history.keep),
    );
    return { ...rest, transcript, leaf: await transcript.open(given) };
  }
  const transcript = transcriptOf(session, observation, history);
  return { ...rest, transcript, leaf: await session.open(observation, images) };
}

/** Lets the policy answer, or go on with an answer that is `begun` already. */
export function ask(
  session: Session,
  state: TurnState,
  limits: TurnLimits,
  more: { readonly begun?: Begun | undefined; readonly topLogprobs?: number } = {},
): Promise<Answer> {
  const maxTokens = state.params.maxTokens ?? limits.maxNewTokens;
  const { begun, topLogprobs } = more;
  const params = { ...state.params, maxTokens, ...(topLogprobs === undefined ? {} : { topLogprobs }) };
  return session.answer(state.leaf, params, begun);
}

/** What the environment is told of an answer. */
export function actionOf(session: Session, state: TurnState, answer: Answer) {
  const { task, signal } = session;
  let observationText: string | undefined;
  return {
    actionText: answer.text,
    actionTokens: answer.tokens,
    /** Decoded when it is read, which most environments do not do. */
    get observationText() {
      observationText ??= session.textUpTo(state.leaf, answer.tokens.length - answer.generation.tokens.length);
      return observationText;
    },
    label: task.label,
    task,
    turn: state.turn,
    finishReason: answer.generation.finishReason,
    signal,
  };
}

/** Gives the answer to the environment and records the step; `answered` is what something else has answered. */
export async function step(
  session: Session,
  state: TurnState,
  answer: Answer,
  limits: Pick<TurnLimits, 'maxTurns'>,
  answered?: StepResult,
): Promise<Turned> {
  const { recorder } = session;
  const { environment, transcript, turn, stateKey } = state;
  const action = actionOf(session, state, answer);
  const given =
    answered ??
    session.callAtOnce('environment', 'environment.step', () => checked(environment.step(action), checkStepResult));
  const result = isThenable(given) ? await given : given;
  const { reward, isVoid, toolFailed, metrics } = result;
  recorder.step({
    segment: answer.segment,
    reward,
    finishReason: action.finishReason,
    ...(stateKey === undefined ? {} : { stateKey }),
    ...(isVoid === undefined ? {} : { isVoid }),
    ...(toolFailed === undefined ? {} : { toolFailed }),
    ...(metrics === undefined ? {} : { metrics }),
  });
  if (result.done) return { result, outcome: { kind: 'done' } };
  if (turn + 1 >= limits.maxTurns) return { result, outcome: { kind: 'truncated', reason: 'turns' } };
  const leaf = await transcript.tell(answer, result.feedback!, result.images, result);
  if (leaf === undefined) return { result, outcome: { kind: 'truncated', reason: 'tokens' } };
  const params = { ...state.params, ...defined(result.samplingParams) };
  return { result, next: { environment, transcript, leaf, turn: turn + 1, stateKey: result.stateKey, params } };
}

/** Without the keys that are undefined, so that they override nothing. */
function defined<T extends object>(values: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(values ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}
