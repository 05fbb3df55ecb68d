import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  agentServerForTests,
  type NemoGymServer,
  resourcesServerForTests,
} from '../../../tests/support/nemo-gym-server.ts';
import { agentServer } from '../../envs/clients/nemo-gym/agent-server.ts';
import type { PolicySegment } from '../../episode/episode.ts';
import type { Task } from '../../episode/task.ts';
import { toTrajectories } from '../../episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../../episode/validate.ts';
import { type TestContextOptions, testContext } from '../../testing/executor-context.ts';
import type { Executor } from '../contracts.ts';
import { nemoGymAgent } from './remote-agent.ts';

/** Episodes that an agent server plays: it asks our model server, and comes back with a verdict and token ids. */

// biome-ignore lint/suspicious/noExplicitAny: items are taken apart as a server would
type Json = any;

const call = (name: string, given: unknown = {}) => `Action: ${name}\nAction Input: ${JSON.stringify(given)}`;
const answers = [call('increment_counter', { count: 1 }), call('increment_counter', { count: 2 }), 'It is 6.'];
const task = (more: object = {}, metadata?: object): Task => {
  const tools = ['increment_counter', 'get_counter_value'].map(name => ({ type: 'function', name, parameters: {} }));
  const params = { input: 'add 1, add 2', tools, ...(metadata && { metadata }) };
  const row = { responses_create_params: params, initial_count: 3, expected_count: 6, ...more };
  return { id: 't', prompt: '', label: '', metadata: row };
};

let resources: NemoGymServer;
let agent: NemoGymServer;
let modelUrl: string;
let executor: Executor;
let returned: (output: Json[]) => Json[];
let maxSteps: number | undefined;

/** The address of the model server is fixed beforehand, as in NeMo Gym's configuration. */
async function freePort(): Promise<number> {
  const { createServer } = await import('node:net');
  const probe = createServer();
  await new Promise<void>(resolve => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise(resolve => probe.close(resolve));
  return port;
}

beforeEach(async () => {
  returned = items => items;
  maxSteps = undefined;
  const port = await freePort();
  modelUrl = `http://127.0.0.1:${port}`;
  resources = await resourcesServerForTests();
  agent = await agentServerForTests({
    resources: resources.url,
    model: () => modelUrl,
    maxSteps: () => maxSteps,
    returned: items => returned(items),
  });
  executor = nemoGymAgent({ agent: agentServer(agent.url, { delaysMs: [1] }), model: { port } });
});
afterEach(async () => {
  await Promise.all([executor.close?.(), agent.close(), resources.close()]);
});

async function run(given: Task = task(), options: TestContextOptions = {}) {
  const lines = options.answers ?? ((_, i) => answers[i]!);
  const context = testContext({ answers: lines, ...options, limits: { maxNewTokens: 200, ...options.limits } });
  const episode = await executor.run(given, context);
  validateEpisode(episode, { vocabularySize: context.renderer.vocabularySize });
  for (const trajectory of toTrajectories(episode)) validateTrajectory(trajectory);
  return episode;
}
const bundled = (items: Json[]) => items.filter(item => item.generation_token_ids !== undefined);

describe('a /run', () => {
  it('is served by our policy, and comes back with the tokens that were recorded', async () => {
    let items: Json[] = [];
    returned = output => {
      items = output;
      return output;
    };
    const episode = await run();
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 0, 1]);
    expect(episode.metrics).toMatchObject({ turns: 3, nemo_gym_answers_returned: 1, recorded_replayed: 1 });
    expect(toTrajectories(episode)).toHaveLength(1);
    const policy = episode.segments.filter((one): one is PolicySegment => one.source === 'policy');
    expect(bundled(items).map(({ generation_token_ids: ids }) => ids)).toEqual(policy.map(({ tokens }) => [...tokens]));
    // The trainer's view of the reply: each prompt goes on with the prompt and the answer before it.
    for (const [i, { prompt_token_ids: prompt }] of bundled(items).entries()) {
      const before = bundled(items)[i - 1];
      const known = before === undefined ? [] : [...before.prompt_token_ids, ...before.generation_token_ids];
      expect(prompt.slice(0, known.length)).toEqual(known);
    }
  });

  it('keeps the episodes that are played at the same time apart', async () => {
    const played = await Promise.all(
      [1, 2, 3, 4, 5].map(n => run(task({ initial_count: n, expected_count: n + 3 }), { sample: n })),
    );
    expect(played.map(({ outcome, score }) => [outcome.kind, score])).toEqual(played.map(() => ['done', 1]));
    expect(played.map(({ segments }) => segments.length)).toEqual([6, 6, 6, 6, 6]);
  });

  it('keeps the metadata of the row, and names the episode beside it', async () => {
    await run(task({}, { topic: 'sums', extra_body: '{"top_k":5}' }));
    const { metadata } = agent.requests[0]!.body.responses_create_params;
    const name = metadata.tokenloop_episode;
    expect(name).toMatch(/^[0-9a-f]{24}$/);
    expect(metadata.topic).toBe('sums');
    expect(JSON.parse(metadata.extra_body)).toEqual({ top_k: 5, tokenloop_episode: name });
    expect(agent.requests[0]!.body._ng_rollout_id).toBe(name);
  });

  it('may end when the agent has had enough steps', async () => {
    maxSteps = 2;
    const episode = await run();
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 1]);
  });

  it('may come back without tokens: what was recorded is trained on all the same', async () => {
    returned = output =>
      output.map(({ prompt_token_ids: _, generation_token_ids: __, generation_log_probs: ___, ...item }) => item);
    const episode = await run();
    expect(episode.score).toBe(1);
    expect(episode.metrics.nemo_gym_answers_returned).toBe(0);
  });
});

describe('tokens that come back', () => {
  const change = (edit: (bundle: Json) => object) => (output: Json[]) => {
    const at = output.findIndex(item => item.generation_token_ids !== undefined);
    return output.map((item, i) => (i === at ? { ...item, ...edit(item) } : item));
  };
  it.each<[string, (bundle: Json) => object, RegExp]>([
    [
      'other ids',
      ({ generation_token_ids: ids }) => ({ generation_token_ids: [...ids.slice(0, -1), 1] }),
      /output\[0\]: its tokens are not those/,
    ],
    ['another prompt', ({ prompt_token_ids: ids }) => ({ prompt_token_ids: ids.slice(1) }), /its prompt is not that/],
    [
      'other log-probs',
      ({ generation_log_probs: given }) => ({ generation_log_probs: given.map((x: number) => x - 0.01) }),
      /its log-probs are not/,
    ],
    [
      'a log-prob too few',
      ({ generation_log_probs: given }) => ({ generation_log_probs: given.slice(1) }),
      /its log-probs are not/,
    ],
    ['no number', () => ({ generation_log_probs: [null] }), /generation_log_probs\[0\]: expected number, got null/],
  ])('must be those that were sampled: %s', async (_, edit, message) => {
    returned = change(edit);
    const episode = await run();
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'recorder' });
    expect((episode.outcome as { message: string }).message).toMatch(message);
  });
});

describe('failures', () => {
  const message = ({ outcome }: { outcome: unknown }) => (outcome as { message: string }).message;

  it('an agent that is down, or whose inner server fails, says so', async () => {
    resources.fault = path => (path === '/seed_session' ? { status: 500, body: '"boom"' } : undefined);
    const failed = await run();
    expect(failed.outcome).toMatchObject({ kind: 'failed', failure: 'environment', step: 0 });
    expect(message(failed)).toMatch(/agent: status 500: Hit an exception in agent calling an inner server: "boom"/);
    await agent.close();
    expect(message(await run())).toMatch(/connection refused; is the server up/);
  });

  it.each([
    [
      'remote_agent_error',
      '{"reward":0,"_ng_failure_class":"remote_agent_error","error":"gave up"}',
      /remote_agent_error: gave up/,
    ],
    ['no reward', '{"response":{"output":[]}}', /reward: expected number, got nothing/],
  ])('a reply of another kind: %s', async (_, body, expected) => {
    agent.fault = () => ({ body });
    const episode = await run();
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment' });
    expect(message(episode)).toMatch(expected);
  });

  it('a run that hangs ends at its deadline, and is sent once', async () => {
    agent.fault = () => ({ hang: true });
    const episode = await run(task(), { limits: { episodeTimeoutMs: 50 } });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'timeout' });
    agent.fault = () => ({ breakAfter: 2 });
    expect((await run()).outcome).toMatchObject({ kind: 'failed', failure: 'environment' });
    expect(agent.requests).toHaveLength(2);
  });

  it('an agent that asks for more turns than there are has no verdict', async () => {
    const episode = await run(task(), { limits: { maxTurns: 2 } });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'overflow', step: 2 });
    expect(message(episode)).toMatch(/agent.max_turns.*max_steps/);
  });

  it('a verdict without a question of the policy is no episode', async () => {
    agent.fault = () => ({ body: '{"reward":1}' });
    const episode = await run();
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'recorder' });
  });
});
