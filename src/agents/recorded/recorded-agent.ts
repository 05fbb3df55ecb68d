import type { Outcome } from '../../episode/episode.ts';
import { boundary, EpisodeError } from '../../episode/failure.ts';
import type { Task } from '../../episode/task.ts';
import type { RewardFunction, RewardOutput, Scored } from '../../rewards/contracts.ts';
import { toolDialect } from '../../text/tool-calls/choose.ts';
import { checkReward } from '../checks.ts';
import type { Executor } from '../contracts.ts';
import { recordEpisode, type Session } from '../session.ts';
import { discountAlongTree } from './discount.ts';
import { Recording } from './recording.ts';
import { type Endpoint, RecordingServer, type RecordingServerOptions } from './server.ts';

/** What the program of one episode is given. */
export interface RecordedRun extends Endpoint {
  readonly task: Task;
  /** Aborts at the deadline, and when the run stops. */
  readonly signal: AbortSignal;
  /** The same for every member of the group. 32-bit unsigned. */
  readonly seed: number;
  readonly id: string;
  readonly log: (message: string) => void;
}

export interface RecordedAgentOptions {
  /**
   * The program: it asks the policy at `baseURL` with `apiKey`, by any client of the OpenAI or Anthropic API. What it
   * returns is the reward (a number, or {reward, score, metrics}), unless `reward` is given.
   */
  readonly run: (task: Task, episode: RecordedRun) => unknown;
  /** Scores the episode: `result` is what the program returned, `text` that result if it is text, else the last answer. */
  readonly reward?: RewardFunction | undefined;
  /**
   * In [0, 1]: each answer's reward becomes its own and `discount` times those of the answers that continue it in the
   * tree, so that credit does not cross branches. For estimators of returns with `algo.advantage.gamma 0`. Off when not
   * given.
   */
  readonly discount?: number | undefined;
  /** Deadline of one episode; `agent.timeout_ms` when not given. */
  readonly timeoutMs?: number | undefined;
  /** Name of a tool-call dialect; that of the checkpoint's chat template, else ReAct, when not given. */
  readonly dialect?: string | undefined;
  /**
   * Requests that ask for what cannot be kept (a call that is required, a form of the text, a temperature) get a 400. They
   * are answered and counted when not given.
   */
  readonly strict?: boolean | undefined;
  /** How to make the server, which is closed with the executor; or one that is the caller's to close. */
  readonly server?: RecordingServerOptions | RecordingServer | undefined;
}

const TIMEOUT_MS = 600_000;

/**
 * Any program that speaks the OpenAI API, as an executor. A server of its own gives each episode a URL and a key and
 * records what is asked there into the episode's tree (conversation-tree.ts). A program that throws fails its episode,
 * unless a limit of the episode made it; one that passes its deadline is stopped being served, and what it sampled is
 * kept in the failed episode.
 */
export function recordedAgent(options: RecordedAgentOptions): Executor {
  const { discount } = options;
  if (discount !== undefined && !(discount >= 0 && discount <= 1)) {
    throw new RangeError(`discount is ${discount}; it must be in [0, 1]`);
  }
  const dialect = options.dialect === undefined ? undefined : toolDialect(options.dialect);
  const { server: given } = options;
  let server: Promise<RecordingServer> | undefined;
  const start = (): RecordingServer | Promise<RecordingServer> => {
    if (given instanceof RecordingServer) return given;
    server ??= RecordingServer.start(given);
    return server;
  };
  return {
    name: 'recorded',
    run: (task, context) =>
      recordEpisode(task, context, async session => {
        const started = await boundary('recorder', 'the recording server', start);
        const recording = new Recording(session, dialect, options.strict);
        const endpoint = await boundary('recorder', 'the recording server', () => started.open(recording));
        let ended: Ended;
        try {
          ended = await program(session, recording, endpoint, options);
        } finally {
          endpoint.close();
        }
        await score(session, recording, ended, options.reward);
        if (discount !== undefined) discountAlongTree(session.recorder, discount);
        return ended.outcome;
      }),
    async close() {
      await (await server)?.close();
    },
  };
}

interface Ended {
  readonly result: unknown;
  readonly outcome: Outcome;
}

/** Runs the program. Rejects with the failure of the episode. */
async function program(
  session: Session,
  recording: Recording,
  { baseURL, apiKey, model, name }: Endpoint,
  options: RecordedAgentOptions,
): Promise<Ended> {
  const { task, context, recorder } = session;
  const { id, limits, log, environmentSeed: seed } = context;
  const over = new AbortController();
  const stop = () => over.abort(session.signal.reason);
  session.signal.addEventListener('abort', stop, { once: true });
  const timeoutMs = options.timeoutMs ?? limits.episodeTimeoutMs ?? TIMEOUT_MS;
  const given = { baseURL, apiKey, model, name, task, signal: over.signal, seed, id, log };
  try {
    const result = await boundary('environment', 'agent', async () => options.run(task, given), {
      signal: session.signal,
      timeoutMs,
    });
    await recording.end({ keepPartial: false });
    recording.settle();
    if (recorder.steps.length === 0) {
      throw new EpisodeError(
        'recorder',
        'agent: it asked the policy nothing; give its client the baseURL and the apiKey',
      );
    }
    const isCut = recorder.steps.at(-1)!.finishReason === 'length';
    return { result, outcome: isCut ? { kind: 'truncated', reason: 'length' } : { kind: 'done' } };
  } catch (error) {
    if (over.signal.aborted || !(error instanceof EpisodeError)) throw error;
    const isOwn = error.failureClass === 'environment';
    const reason = isOwn && recorder.steps.length > 0 ? recording.refused : undefined;
    await recording.end({ keepPartial: reason === undefined });
    if (error.failureClass !== 'recorder') recording.settle();
    if (reason !== undefined) return { result: undefined, outcome: { kind: 'truncated', reason } };
    if (isOwn && recording.providerError !== undefined) throw recording.providerError;
    if (isOwn && recording.refused === 'tokens') throw new EpisodeError('overflow', error.message, { cause: error });
    throw error;
  } finally {
    session.signal.removeEventListener('abort', stop);
    over.abort(new Error('the episode is over'));
  }
}

async function score(
  session: Session,
  recording: Recording,
  { result, outcome }: Ended,
  reward: RewardFunction | undefined,
): Promise<void> {
  const { task, context, recorder, signal } = session;
  const { id, group, sample } = context;
  const scored = await session.call('reward', 'reward', async (): Promise<Scored | undefined> => {
    if (reward === undefined) {
      if (result === undefined && (recording.isRewarded || outcome.kind === 'truncated')) return undefined;
      if (isReward(result)) return checkReward([result], recorder.places());
      throw new Error(
        'there is none: return a number or {reward} from the agent, give a reward function, or post one to /rewards',
      );
    }
    const prompt = session.textUpTo(0);
    const text = typeof result === 'string' ? result : recording.lastText;
    const episode = { id, group, sample, segments: recorder.segments, steps: recorder.steps };
    const input = { task, prompt, text, query: prompt + text, label: task.label, episode, result, signal };
    return checkReward(await reward([input]), recorder.places());
  });
  if (scored === undefined) return;
  recorder.addReward(scored.reward, scored);
  session.score = scored.score;
  session.addMetrics(scored.metrics);
}

function isReward(result: unknown): result is number | RewardOutput {
  return typeof result === 'number' || (typeof result === 'object' && result !== null && 'reward' in result);
}
