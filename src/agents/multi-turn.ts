import type { EnvironmentFactory } from '../envs/contracts.ts';
import type { Outcome } from '../episode/episode.ts';
import type { Executor } from './contracts.ts';
import { checkFold, type HistoryOptions } from './folding.ts';
import { checkObservations, type ObservationOptions } from './observations.ts';
import { recordEpisode, type Session } from './session.ts';
import { type ToolUseOptions, toolUser } from './tools/tool-use.ts';
import { ask, begin, makeEnvironment, step, type TurnLimits, turnLimits } from './turns.ts';

export interface MultiTurnOptions extends HistoryOptions {
  /** Answers per episode; the run's limit by default. */
  readonly maxTurns?: number | undefined;
  /** Tokens per answer; the run's limit by default. */
  readonly maxNewTokens?: number | undefined;
  /** What the policy sees on its turn, written anew each turn; the conversation as it was when not given. */
  readonly observations?: ObservationOptions | undefined;
  /** Tools that the policy may call before it acts. */
  readonly tools?: ToolUseOptions | undefined;
  /** Measures `episode_return`, `episode_length` (answers) and `episode_seconds` of every episode, failed ones too. */
  readonly track?: boolean | undefined;
}

/**
 * The policy and an environment take turns until the environment is done, the turns are used up, or the feedback no
 * longer fits the window. An answer cut by its length is given to the environment, which is told so.
 * @throws RangeError for a fold that never happens, Error for tools that cannot be told apart or called
 */
export function multiTurn(factory: EnvironmentFactory, options: MultiTurnOptions = {}): Executor {
  if (options.fold) checkFold(options.fold);
  if (options.fold?.tool)
    throw new RangeError(
      'folding: an environment has no tools for the policy to call; give a number of turns or tokens',
    );
  if (options.observations) {
    checkObservations(options.observations);
    if (options.fold)
      throw new RangeError('folding keeps a conversation, and observations are written anew each turn; leave one out');
  }
  const withTools = options.tools && toolUser(options.tools);
  const pools = new Set(options.tools?.tools.flatMap(({ pool }) => pool ?? []));
  return {
    name: 'multi-turn',
    run: (task, context) =>
      recordEpisode(task, context, session => {
        if (options.track) track(session);
        return play(session, factory, turnLimits(options, context), { ...options, withTools });
      }),
    async close() {
      await Promise.all([...pools].map(pool => pool.close()));
    },
  };
}

function track(session: Session): void {
  const begun = performance.now();
  session.onEnd('tracking', () => {
    const { steps } = session.recorder;
    session.addMetrics({
      episode_return: steps.reduce((sum, { reward }) => sum + reward, 0),
      episode_length: steps.length,
      episode_seconds: (performance.now() - begun) / 1000,
    });
  });
}

async function play(
  session: Session,
  factory: EnvironmentFactory,
  limits: TurnLimits,
  { withTools, ...history }: MultiTurnOptions & { readonly withTools: ReturnType<typeof toolUser> | undefined },
): Promise<Outcome> {
  const made = await makeEnvironment(session, factory);
  const tools = withTools?.(session, made);
  const environment = tools?.environment ?? made;
  session.addMetrics({ turns: 0 });
  let state = await begin(session, environment, history);
  for (;;) {
    const answer = await ask(session, state, limits);
    const called = tools && (await tools.use(answer, state.turn));
    const { result, outcome, next } = await step(session, state, answer, limits, called);
    session.addMetrics({ ...result.metrics, turns: 1 });
    session.score = result.score ?? session.score;
    if (outcome !== undefined) return outcome;
    state = next;
  }
}
