import type { Environment, EnvironmentFactory, StepResult } from '../envs/contracts.ts';
import type { Outcome } from '../episode/episode.ts';
import { checkEnvironment, checkReset, checkStepResult } from './checks.ts';
import type { Executor } from './contracts.ts';
import { recordEpisode, type Session } from './session.ts';
import { Transcript } from './transcript.ts';

export interface MultiTurnOptions {
  /** Answers per episode; the run's limit by default. */
  readonly maxTurns?: number;
  /** Tokens per answer; the run's limit by default. */
  readonly maxNewTokens?: number;
}

/**
 * The policy and an environment take turns until the environment is done, the turns are used up, or the feedback no
 * longer fits the window. An answer cut by its length is given to the environment, which is told so.
 */
export function multiTurn(factory: EnvironmentFactory, options: MultiTurnOptions = {}): Executor {
  return {
    name: 'multi-turn',
    run: (task, context) =>
      recordEpisode(task, context, async session => {
        const environment = await make(session, factory);
        const maxTurns = options.maxTurns ?? context.limits.maxTurns;
        const maxNewTokens = options.maxNewTokens ?? context.limits.maxNewTokens;
        session.addMetrics({ turns: 0 });
        return play(session, environment, { maxTurns, maxNewTokens });
      }),
  };
}

/** Makes the environment and sees to it that it is closed, also when it is ready only after the episode has ended. */
function make(session: Session, factory: EnvironmentFactory): Promise<Environment> {
  return session.call('environment', 'making the environment', async () => {
    const environment = checkEnvironment(await factory());
    if (environment.close !== undefined) session.onEnd('environment.close', () => environment.close?.());
    return environment;
  });
}

async function play(
  session: Session,
  environment: Environment,
  limits: { readonly maxTurns: number; readonly maxNewTokens: number },
): Promise<Outcome> {
  const { task, context, recorder, signal } = session;
  const environmentContext = { seed: context.environmentSeed, signal };
  const start = await session.call('environment', 'environment.reset', async () =>
    checkReset(await environment.reset(task, environmentContext)),
  );
  const transcript = new Transcript(session, start.observation);
  let leaf = await session.open(start.observation, start.images);
  let stateKey = start.stateKey;
  let params: NonNullable<StepResult['samplingParams']> = {};

  for (let turn = 0; ; turn++) {
    const observationText = session.textUpTo(leaf);
    const answer = await session.answer(leaf, { ...params, maxTokens: params.maxTokens ?? limits.maxNewTokens });
    const { tokens: actionTokens, finishReason } = answer.generation;
    const action = {
      actionText: answer.text,
      actionTokens,
      observationText,
      label: task.label,
      task,
      turn,
      finishReason,
      signal,
    };
    const result = await session.call('environment', 'environment.step', async () =>
      checkStepResult(await environment.step(action)),
    );
    const { reward, isVoid, toolFailed, metrics } = result;
    recorder.step({
      segment: answer.segment,
      reward,
      finishReason,
      ...(stateKey === undefined ? {} : { stateKey }),
      ...(isVoid === undefined ? {} : { isVoid }),
      ...(toolFailed === undefined ? {} : { toolFailed }),
      ...(metrics === undefined ? {} : { metrics }),
    });
    session.addMetrics({ ...metrics, turns: 1 });
    session.score = result.score ?? session.score;
    if (result.done) return { kind: 'done' };
    if (turn + 1 >= limits.maxTurns) return { kind: 'truncated', reason: 'turns' };

    const next = await transcript.tell(answer, result.feedback!, result.images);
    if (next === undefined) return { kind: 'truncated', reason: 'tokens' };
    leaf = next;
    stateKey = result.stateKey;
    params = { ...params, ...given(result.samplingParams) };
  }
}

/** Without the keys that are undefined, so that they override nothing. */
function given<T extends object>(values: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(values ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}
