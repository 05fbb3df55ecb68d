import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Executor } from '../../src/agents/contracts.ts';
import { nemoGymAgent } from '../../src/agents/nemo-gym/remote-agent.ts';
import { nemoGym } from '../../src/agents/nemo-gym/resources-agent.ts';
import { agentServer } from '../../src/envs/clients/nemo-gym/agent-server.ts';
import { serverUrl } from '../../src/envs/clients/nemo-gym/head-server.ts';
import { resourcesServer } from '../../src/envs/clients/nemo-gym/resources-server.ts';
import type { Episode } from '../../src/episode/episode.ts';
import type { Task } from '../../src/episode/task.ts';
import { toTrajectories } from '../../src/episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../../src/episode/validate.ts';
import { testContext } from '../../src/testing/executor-context.ts';

/**
 * Our NeMo Gym clients and model server against the real package, with scripted answers for a policy:
 *
 *   NEMO_GYM_PYTHON=venv/bin/python npx tsx tools/peers/nemo-gym.ts
 *
 * The Python is 3.13 with `pip install nemo-gym`. Prints a line for each way of playing, and exits with 1 if an episode
 * was not what it must be. Every episode is validated.
 */

const python = process.env.NEMO_GYM_PYTHON;
if (python === undefined) {
  console.error('skipped: NEMO_GYM_PYTHON does not name a Python that has the package nemo-gym');
  process.exit(0);
}

const port = await freePort();
const { child, urls } = await startPeer(python, `http://127.0.0.1:${port}/v1`);
let isFine = true;
try {
  const call = (name: string, given: object) => `Action: ${name}\nAction Input: ${JSON.stringify(given)}`;
  const counting = [call('increment_counter', { count: 1 }), call('increment_counter', { count: 2 }), 'It is done.'];
  const { counter, follow_ups, head } = urls as { counter: string; follow_ups: string; head: string };
  const resources = nemoGym({ server: resourcesServer(counter) });
  await check('tools of a resources server', resources, counterTask, counting);
  const gymnasium = nemoGym({ server: resourcesServer(follow_ups), style: 'gymnasium' });
  const answers = ['Paris', 'Two million', 'The Eiffel tower'];
  await check('a server in the style of Gymnasium', gymnasium, followUpsTask, answers);
  for (const name of ['agent', 'vllm_agent']) {
    // Its address comes from the head server.
    const agent = nemoGymAgent({ agent: agentServer(await serverUrl(head, name)), model: { port } });
    await check(`/run of ${name}`, agent, counterTask, counting, { nemo_gym_answers_returned: 1 });
    await check(`/run of ${name}, window full`, agent, counterTask, counting, {}, 700);
    await agent.close?.();
  }
  const agent = nemoGymAgent({ agent: agentServer(urls.gymnasium_agent!), model: { port } });
  await check('/run of gymnasium_agent', agent, followUpsTask, answers, { nemo_gym_answers_returned: 1 });
  await agent.close?.();
} finally {
  child.stdin?.end();
}
process.exit(isFine ? 0 : 1);

function counterTask(i: number): Task {
  const integer = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] };
  const tools = [
    { type: 'function', name: 'increment_counter', description: '', strict: true, parameters: integer },
    { type: 'function', name: 'get_counter_value', description: '', strict: true, parameters: { type: 'object' } },
  ];
  const params = { input: [{ role: 'user', content: 'add 1, then 2' }], tools };
  // Every third one expects what is not so.
  const expected = i + (i % 3 === 2 ? 4 : 3);
  return taskOf(
    i,
    { responses_create_params: params, initial_count: i, expected_count: expected },
    i % 3 === 2 ? 0 : 1,
  );
}

function followUpsTask(i: number): Task {
  const input = [{ role: 'user', content: 'What is the capital of France?' }];
  const follow_ups = ['How many people live there?', 'Name a landmark.'];
  const expected = i % 3 === 2 ? 'louvre' : 'eiffel';
  const metadata = { follow_ups, expected_answer: expected };
  const row = { responses_create_params: { input }, ...metadata, verifier_metadata: metadata };
  return taskOf(i, row, i % 3 === 2 ? 0 : 1);
}

function taskOf(i: number, metadata: Task['metadata'], label: number): Task {
  return { id: String(i), prompt: '', label: String(label), metadata };
}

/** Twelve episodes at a time. Where the window is too small the episode must be one in order or an overflow. */
async function check(
  what: string,
  executor: Executor,
  make: (i: number) => Task,
  lines: readonly string[],
  metrics: Readonly<Record<string, number>> = {},
  maxTokens = 8192,
): Promise<void> {
  const tasks = Array.from({ length: 12 }, (_, i) => make(i));
  const groups = await Promise.all(
    tasks.map(async (task, i) => {
      const limits = { maxNewTokens: 256, maxTokens, callTimeoutMs: 20_000 };
      const context = testContext({
        answers: (_, turn) => lines[turn] ?? 'Nothing.',
        sample: i,
        limits,
        contextLength: 8192,
      });
      const episode = await executor.run(task, context);
      validateEpisode(episode, { vocabularySize: context.renderer.vocabularySize });
      for (const trajectory of toTrajectories(episode)) validateTrajectory(trajectory);
      return [episode];
    }),
  );
  const isRight = (episode: Episode) =>
    maxTokens < 8192
      ? episode.outcome.kind !== 'failed' || episode.outcome.failure === 'overflow'
      : episode.outcome.kind === 'done' &&
        String(episode.score) === episode.task.label &&
        episode.steps.length === lines.length &&
        Object.entries(metrics).every(([name, value]) => episode.metrics[name] === value);
  const right = groups.flat().filter(isRight);
  isFine &&= right.length === tasks.length;
  const summary = await executor.summarize?.(groups, new AbortController().signal);
  const reward = summary?.['nemo_gym/mean/reward'];
  console.log(`${what}: ${right.length} of ${tasks.length} as they must be; mean/reward ${reward ?? 'not given'}`);
  for (const { outcome, score, metrics: own } of groups
    .flat()
    .filter(one => !isRight(one))
    .slice(0, 2)) {
    console.log(JSON.stringify({ outcome, score, own }));
  }
}

async function startPeer(program: string, policy: string) {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'nemo_gym_peer.py');
  const child: ChildProcess = spawn(program, [script, policy], { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout! })) {
    if (line.startsWith('{')) return { child, urls: JSON.parse(line) as Readonly<Record<string, string>> };
  }
  throw new Error(`${program} ${script} ended before its servers answered`);
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}
