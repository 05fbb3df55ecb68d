import type { Generation, SamplingParams } from '../../engines/contracts.ts';
import type { Outcome } from '../../episode/episode.ts';
import { boundary, EpisodeError } from '../../episode/failure.ts';
import { checkMetrics } from '../checks.ts';
import type { Executor } from '../contracts.ts';
import { recordEpisode, type Session } from '../session.ts';
import { AsyncQueue } from './async-queue.ts';
import { bundle } from './bundle.ts';
import type {
  BundledGenerationOutputs,
  CollectedSequence,
  EnvironmentService,
  GenerationConfig,
  QueueAgent,
  QueueRequest,
} from './contracts.ts';
import { answersWith, onlyPaths, place } from './token-tree.ts';

export interface QueueAgentOptions {
  /** Makes the agent of one episode. */
  readonly agent: () => QueueAgent<never>;
  /** Makes its environment. */
  readonly environment: () => EnvironmentService<never>;
  /** Items that wait in a queue; 1024 when not given. */
  readonly capacity?: number | undefined;
}

/** A limit that ends an episode in order. */
class Limit extends Error {
  readonly reason: 'turns' | 'tokens';

  constructor(reason: Limit['reason']) {
    super(`the episode has reached its limit of ${reason}`);
    this.reason = reason;
  }
}

/**
 * AReaL's agents: what `collectTrajectory` puts on the queue of observations are the exact tokens that the policy is
 * conditioned on. A request that goes on where the policy was is recorded behind its sampled tokens; any other opens a
 * branch. Trained on are the sequences that the agent returns, each with its reward; an empty list rejects the episode.
 * Several samples of one request are alternatives of each other, which an agent that also rewrites its history, and so
 * has parts, cannot have. Limits: `maxTurns` requests, the window, and `episodeTimeoutMs` for the whole.
 */
export function queueAgent({ agent, environment, capacity }: QueueAgentOptions): Executor {
  return {
    name: 'queue',
    async run(task, context) {
      const kept = new Set<number>();
      const episode = await recordEpisode(task, context, session =>
        collect(session, { agent, environment, capacity, kept }),
      );
      return kept.size > 0 ? onlyPaths(episode, kept) : episode;
    },
  };
}

async function collect(
  session: Session,
  options: QueueAgentOptions & { readonly kept: Set<number> },
): Promise<Outcome> {
  const { context, task, signal, recorder } = session;
  const agent = await session.call('environment', 'making the agent', options.agent);
  const service = await session.call('environment', 'making the environment', options.environment);
  session.onEnd('environment.close', () => service.close?.());
  const root = await session.open(task.prompt, task.images);
  const promptIds = Array.from(recorder.context(root));
  const observations = new AsyncQueue<QueueRequest>(options.capacity);
  const actions = new AsyncQueue<BundledGenerationOutputs>(options.capacity);
  session.addMetrics({ turns: 0 });
  const over = new AbortController();
  const served = serve(session, observations, actions);
  const prompt = { qid: context.id, promptIds, prompt_ids: promptIds, task };
  const given = { renderer: context.renderer, seed: context.environmentSeed, signal };
  const collected = boundary(
    'environment',
    'agent.collectTrajectory',
    () => agent.collectTrajectory(prompt, guarded(session, service) as never, observations, actions, given),
    { signal: AbortSignal.any([signal, over.signal]), timeoutMs: context.limits.episodeTimeoutMs ?? 600_000 },
  );
  try {
    // The server of requests only ends with an error: then there is nothing left for the agent to wait for.
    const returned = await Promise.race([collected, served]);
    return reward(session, returned, options.kept);
  } catch (error) {
    if (!(error instanceof Limit)) throw error;
    return { kind: 'truncated', reason: error.reason };
  } finally {
    const ended = new Error('the episode is over');
    over.abort(ended);
    observations.close(ended);
    actions.close(ended);
    await Promise.allSettled([collected, served]);
  }
}

/** Serves requests in the order in which they were put, all that are there at the same time. */
async function serve(
  session: Session,
  observations: AsyncQueue<QueueRequest>,
  actions: AsyncQueue<BundledGenerationOutputs>,
): Promise<never> {
  const { context, recorder } = session;
  let requests = 0;
  let branched = false;
  let before: Promise<unknown> = Promise.resolve();
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  for (;;) {
    const request = await Promise.race([observations.get(), failed]);
    if (requests++ >= context.limits.maxTurns) throw new Limit('turns');
    const { qid, tokens, samples, params } = readRequest(request, context.limits.maxNewTokens);
    if (!session.fits(tokens.length, 0)) throw new Limit('tokens');
    const policySegments = recorder.segments.filter(({ source }) => source === 'policy');
    const parent = place(recorder, tokens);
    branched ||= policySegments.length > 0 && !continuesAnswer(session, parent);
    if (samples > 1) session.leaves = 'alternatives';
    if (branched && session.leaves === 'alternatives') {
      throw new EpisodeError(
        'recorder',
        'the agent samples a context several times and rewrites its history as well, so the leaves of its episode are neither alternatives nor parts; do one of both, and use rollout.n_samples_per_prompt for samples',
      );
    }
    // Asked for in this tick, so that seeds follow the order of the requests; recorded in that order, too.
    const sampled = Array.from({ length: samples }, () => session.sample(parent, params));
    before = Promise.all([Promise.all(sampled), before]).then(async ([generations]) => {
      for (const generation of generations) record(session, parent, generation);
      session.addMetrics({ turns: 1 });
      await actions.put(bundle(qid, tokens, generations));
    });
    before.catch(fail);
  }
}

function continuesAnswer({ recorder }: Session, parent: number): boolean {
  const { segments } = recorder;
  for (let id = parent; id >= 0; id = segments[id]!.parent) if (segments[id]!.source === 'policy') return true;
  return false;
}

function record(session: Session, parent: number, generation: Generation): void {
  const { segment } = session.record(parent, generation);
  session.recorder.step({ segment, reward: 0, finishReason: generation.finishReason });
  if (generation.finishReason === 'abort') throw new EpisodeError('provider', 'policy: the answer was aborted');
}

const CONFIG = ['n', 'maxNewTokens', 'temperature', 'topP', 'topK', 'greedy', 'stop'] as const;
const SNAKE = { max_new_tokens: 'maxNewTokens', top_p: 'topP', top_k: 'topK' } as const;

function readRequest(request: QueueRequest, maxNewTokens: number) {
  const refuse = (what: string) => new EpisodeError('environment', `obsQueue.put: ${what}`);
  if (!Array.isArray(request)) throw refuse('expected [qid, prompt token ids, generation config]');
  const [qid, ids, given = {}] = request as unknown as QueueRequest;
  const tokens = Int32Array.from(ids ?? []);
  if (tokens.length === 0) throw refuse('no prompt token ids; the policy must be given at least one');
  const wrong = Array.from(ids).findIndex(id => !Number.isInteger(id) || id < 0);
  if (wrong >= 0) throw refuse(`prompt token ${wrong} is ${ids[wrong]}; token ids are whole numbers from 0`);
  const config: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const own = SNAKE[name as keyof typeof SNAKE] ?? name;
    if (!(CONFIG as readonly string[]).includes(own)) {
      throw refuse(`the generation config has ${name}; there are ${CONFIG.join(', ')}`);
    }
    config[own] = value;
  }
  const { n = 1, greedy, temperature, topP, topK, stop, ...rest } = config as GenerationConfig;
  if (!Number.isInteger(n) || n < 1) throw refuse(`n is ${n}; expected 1 or more samples`);
  const params: Partial<SamplingParams> & { maxTokens: number } = {
    maxTokens: Math.min(rest.maxNewTokens ?? maxNewTokens, maxNewTokens),
    ...(temperature === undefined ? {} : { temperature }),
    ...(greedy ? { temperature: 0 } : {}),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(stop === undefined ? {} : { stopStrings: [...stop] }),
  };
  return { qid, tokens, samples: n, params };
}

/** The environment, with each call under the deadline. */
function guarded(session: Session, service: EnvironmentService<never>): EnvironmentService<never> {
  return {
    reset: options => session.call('environment', 'environment.reset', () => service.reset(options)),
    step: action => session.call('environment', 'environment.step', () => service.step(action)),
  };
}

/** Hands the rewards of what the agent returned to the steps they belong to. */
function reward(session: Session, returned: readonly CollectedSequence[], kept: Set<number>): Outcome {
  const { recorder } = session;
  if (!Array.isArray(returned)) {
    throw new EpisodeError('environment', 'agent.collectTrajectory: expected a list of {sequence, reward}');
  }
  if (returned.length === 0) return { kind: 'rejected', reason: 'the agent returned no trajectory' };
  for (const [i, { sequence, reward, metrics }] of (returned as readonly CollectedSequence[]).entries()) {
    const where = `agent.collectTrajectory: sequence ${i}`;
    if (!Number.isFinite(reward)) {
      throw new EpisodeError('reward', `${where} has the reward ${reward}; expected a finite number`);
    }
    const tokens = Int32Array.from(sequence ?? []);
    const segment = answersWith(recorder, tokens).find(id => !kept.has(id));
    if (segment === undefined) {
      throw new EpisodeError(
        'recorder',
        `${where} (${tokens.length} tokens) is none that ends with an answer of the policy, or was returned twice; return the seqs that the queue gave, unchanged`,
      );
    }
    kept.add(segment);
    recorder.steps.find(step => step.segment === segment)!.reward = reward;
    session.addMetrics(metrics === undefined ? undefined : checkMetrics(metrics));
  }
  const last = recorder.steps.findLast(({ segment }) => kept.has(segment))!;
  return last.finishReason === 'length' ? { kind: 'truncated', reason: 'length' } : { kind: 'done' };
}
