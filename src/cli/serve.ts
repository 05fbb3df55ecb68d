import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { appendFile } from 'node:fs/promises';
import { resolve as resolvePath } from 'node:path';
import { z } from 'zod';
import { agentOptions } from '../agents/options.ts';
import { ApiError } from '../agents/recorded/api-error.ts';
import { parseBody } from '../agents/recorded/dialects/contracts.ts';
import { FidelityReport } from '../agents/recorded/fidelity.ts';
import { type RecordedRun, recordedAgent } from '../agents/recorded/recorded-agent.ts';
import { type OtherRequest, RecordingServer } from '../agents/recorded/server.ts';
import { compose, pick } from '../config/compose.ts';
import { DEFAULT_SAMPLING } from '../engines/contracts.ts';
import { adapterOptions, engineOptions, modelOptions, samplingOptions } from '../engines/onnx/options.ts';
import { type Episode, episodeReward } from '../episode/episode.ts';
import { serializeEpisode } from '../episode/serialize.ts';
import { sameKey } from '../http/key.ts';
import { options } from '../options/option.ts';
import { immediate } from '../rollout/admission.ts';
import { type RolloutContext, startGroups } from '../rollout/groups.ts';
import { rolloutOptions } from '../rollout/options.ts';
import { seedOf } from '../rollout/seeds.ts';
import { toTask } from '../rollout/tasks.ts';
import { trainOptions } from '../training/options.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { listenOptions } from './listen-options.ts';
import { adapterOf, locateModel } from './model.ts';

const serveOptions = compose(
  pick(modelOptions, 'model.model_name_or_path', 'model.model_revision'),
  adapterOptions,
  listenOptions,
  options({
    'serve.models': {
      schema: z.array(z.string().min(1)).default(['policy']),
      help: 'Names by which clients may ask for the policy; * answers to every name',
    },
    'serve.episodes': {
      schema: z.string().optional(),
      help: 'JSONL file to which every episode is appended when it has ended',
    },
  }),
  pick(rolloutOptions, 'rollout.max_new_tokens', 'rollout.temperature'),
  agentOptions,
  pick(trainOptions, 'train.seed'),
  pick(engineOptions, 'engine.threads', 'engine.device'),
  samplingOptions,
);
type ServeOptions = typeof serveOptions;

export const command = defineCommand({
  name: 'serve',
  options: serveOptions,
  details:
    'POST /episodes with the printed key opens an episode and gives its base_url and api_key; POST /episodes/ID/end ' +
    'ends it with {"reward": 1} and gives what was recorded. Ctrl-C stops.',
  async run(context) {
    const { onnxPolicy } = await import('../engines/onnx/index.ts');
    const { values } = context;
    const model = await locateModel(values['model.model_name_or_path'], values['model.model_revision'], context);
    const policy = await onnxPolicy({
      model,
      lora: adapterOf(values, context.cwd),
      threads: values['engine.threads'],
      device: values['engine.device'],
      samplingDtype: values['rollout.dtype'],
      training: false,
    });
    try {
      await serve(policy, context);
    } finally {
      await policy.close();
    }
    return 0;
  },
});

interface Running {
  readonly end: (result: unknown) => void;
  readonly fail: (error: Error) => void;
  readonly episode: Promise<Episode>;
}

const opening = z.looseObject({
  id: z.string().optional(),
  prompt: z.string().default(''),
  label: z.string().default(''),
});
const ending = z.looseObject({ reward: z.number().optional(), error: z.string().optional() });

/** Serves episodes until the command is interrupted. */
export async function serve(
  {
    sampler,
    renderer,
  }: Pick<RolloutContext, 'renderer'> & {
    readonly sampler: Parameters<typeof immediate>[0] & { readonly contextLength: number };
  },
  {
    values,
    stdout,
    stderr,
    interrupt,
    cwd,
  }: Pick<CommandContext<ServeOptions>, 'values' | 'stdout' | 'stderr' | 'interrupt' | 'cwd'>,
): Promise<void> {
  const key = `tl-${randomBytes(24).toString('base64url')}`;
  const running = new Map<string, Running>();
  const opened = new Map<string, (run: RecordedRun, end: Running['end'], fail: Running['fail']) => void>();
  const fidelity = new FidelityReport();
  const stop = new AbortController();
  // One listener for each episode that is open.
  setMaxListeners(0, stop.signal);
  let count = 0;

  const server = await RecordingServer.start({
    host: values['serve.host'],
    port: values['serve.port'],
    models: values['serve.models'],
    other: request => route(request),
  });
  const executor = recordedAgent({
    server,
    run: (task, run) =>
      new Promise((end, fail) => {
        opened.get(task.id)?.(run, end, fail);
        run.signal.addEventListener('abort', () => fail(run.signal.reason), { once: true });
      }),
  });
  const { contextLength } = sampler;
  const maxNewTokens = values['rollout.max_new_tokens'] ?? contextLength;
  const rollout: RolloutContext = {
    executor,
    admission: immediate(sampler),
    contextLength,
    renderer,
    params: {
      ...DEFAULT_SAMPLING,
      temperature: values['rollout.temperature'],
      stopTokens: renderer.stopTokens,
      maxTokens: maxNewTokens,
    },
    limits: {
      maxTurns: values['agent.max_turns'],
      maxNewTokens,
      maxTokens: Math.min(values['data.max_len'] ?? contextLength, contextLength),
      callTimeoutMs: values['agent.call_timeout_ms'],
      episodeTimeoutMs: values['agent.timeout_ms'],
    },
    seed: values['train.seed'],
    signal: stop.signal,
    log: message => stderr.write(`${message}\n`),
  };

  const route = (request: OtherRequest): Promise<unknown> | undefined => {
    const match = /^\/episodes(?:\/([\w-]+)\/end)?$/.exec(request.path);
    if (match === null) return undefined;
    if (!sameKey(request.key, key)) {
      return Promise.reject(
        new ApiError(401, 'the key is not the one that was printed', { type: 'authentication_error' }),
      );
    }
    if (request.method !== 'POST') return Promise.reject(new ApiError(405, 'only POST is allowed here'));
    return match[1] === undefined ? open(request) : end(match[1], request);
  };

  const open = async (request: OtherRequest) => {
    const { id = String(count), ...given } = parseBody(opening, await request.body());
    if (running.has(id)) throw new ApiError(409, `an episode ${JSON.stringify(id)} is open already`);
    const task = toTask({ ...given, id }, count++, 'serve');
    return new Promise((resolve, reject) => {
      opened.set(id, (run, finish, fail) => {
        opened.delete(id);
        running.set(id, { end: finish, fail, episode });
        resolve({ id, base_url: run.baseURL, api_key: run.apiKey, model: run.model });
      });
      const group = `serve/${id}`;
      const spec = { task, group, samples: 1, environmentSeed: seedOf(values['train.seed'], 'environment', group) };
      const episode = startGroups([spec], rollout)[0]!.then(({ episodes }) => keep(id, episodes[0]!));
      // Means nothing where the program has been told where to ask.
      episode.then(
        ({ outcome }) => reject(new ApiError(503, `the episode ended at once: ${JSON.stringify(outcome)}`)),
        reject,
      );
    });
  };

  const keep = async (id: string, episode: Episode): Promise<Episode> => {
    opened.delete(id);
    running.delete(id);
    fidelity.add([episode]);
    const file = values['serve.episodes'];
    if (file !== undefined) await appendFile(resolvePath(cwd, file), `${serializeEpisode(episode)}\n`);
    return episode;
  };

  const end = async (id: string, request: OtherRequest) => {
    const { reward, error } = parseBody(ending, await request.body());
    const one = running.get(id);
    if (one === undefined) throw new ApiError(404, `no episode ${JSON.stringify(id)} is open`);
    if (error === undefined) one.end(reward);
    else one.fail(new Error(error));
    const { outcome, steps, segments, metrics, ...rest } = await one.episode;
    const sampled = segments.reduce((sum, { source, tokens }) => sum + (source === 'policy' ? tokens.length : 0), 0);
    return { id, outcome, reward: episodeReward({ steps, segments, ...rest }), steps: steps.length, sampled, metrics };
  };

  server.hold();
  stdout.write(`url ${server.url}\nkey ${key}\n`);
  try {
    const { signal } = interrupt;
    if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
  } finally {
    for (const { fail } of running.values()) fail(new Error('the server was stopped'));
    await Promise.allSettled([...running.values()].map(({ episode }) => episode));
    stop.abort(new Error('the server was stopped'));
    await server.close();
  }
  const report = fidelity.describe();
  if (report !== undefined) stderr.write(`${report}\n`);
}
