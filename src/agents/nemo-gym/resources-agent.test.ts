import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hermesRenderer as renderer } from '../../../tests/support/hermes-renderer.ts';
import { type Fault, type NemoGymServer, resourcesServerForTests } from '../../../tests/support/nemo-gym-server.ts';
import { scriptedEpisode } from '../../../tests/support/scripted-episode.ts';
import { resourcesServer } from '../../envs/clients/nemo-gym/resources-server.ts';
import type { Episode } from '../../episode/episode.ts';
import type { Task } from '../../episode/task.ts';
import { toTrajectories } from '../../episode/trajectory.ts';
import { type TestContextOptions, testContext } from '../../testing/executor-context.ts';
import { type NemoGymOptions, nemoGym } from './resources-agent.ts';

const call = (name: string, given: unknown = {}) =>
  `<tool_call>${JSON.stringify({ name, arguments: given })}</tool_call>`;
const tool = (name: string, properties = {}) => ({
  type: 'function',
  name,
  description: '',
  strict: true,
  parameters: { type: 'object', properties },
});
const counting = (more: object = {}): Task => ({
  id: 't',
  prompt: '',
  label: '',
  metadata: {
    responses_create_params: {
      input: [{ role: 'user', content: 'add 1, add 2, tell' }],
      tools: [tool('increment_counter', { count: { type: 'integer' } }), tool('get_counter_value')],
    },
    initial_count: 3,
    expected_count: 6,
    ...more,
  },
});
const asking = (verifier_metadata: object, more: object = {}): Task => ({
  ...counting(),
  metadata: { responses_create_params: { input: 'begin', ...more }, verifier_metadata },
});
const right = [
  call('increment_counter', { count: 1 }) + call('increment_counter', { count: 2 }),
  call('get_counter_value'),
  'It is 6.',
];

let server: NemoGymServer;
beforeEach(async () => {
  server = await resourcesServerForTests();
});
afterEach(() => server.close());

async function run(
  task: Task,
  answers: readonly string[] | NonNullable<TestContextOptions['answers']>,
  options: Partial<NemoGymOptions> = {},
  context: TestContextOptions = {},
) {
  const executor = nemoGym({ server: resourcesServer(server.url, { delaysMs: [1, 1] }), ...options });
  return { executor, ...(await scriptedEpisode(executor, task, answers, { renderer, ...context })) };
}
const paths = () => server.requests.map(({ path }) => path);
const rewards = (episode: Episode) => episode.steps.map(({ reward }) => reward);

describe('with tools', () => {
  it('seeds, calls in order, and is given the reward of the verdict', async () => {
    const { episode, seen } = await run(counting(), right);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(rewards(episode)).toEqual([0, 0, 1]);
    expect(paths()).toEqual([
      '/seed_session',
      '/increment_counter',
      '/increment_counter',
      '/get_counter_value',
      '/verify',
    ]);
    expect(new Set(server.requests.slice(1).map(({ session }) => session)).size).toBe(1);
    expect(seen[2]).toBe(
      '<|im_start|>system\nincrement_counter get_counter_value as <tool_call><|im_end|>\n<|im_start|>user\nadd 1, add 2, tell<|im_end|>\n' +
        `<|im_start|>assistant\n${right[0]}<|im_end|>\n<|im_start|>tool\n{"success":true}<|im_end|>\n<|im_start|>tool\n{"success":true}<|im_end|>\n` +
        `<|im_start|>assistant\n${right[1]}<|im_end|>\n<|im_start|>tool\n{"count":6}<|im_end|>\n<|im_start|>assistant\n`,
    );
    expect(toTrajectories(episode)).toHaveLength(1);
    expect(episode.metrics).toMatchObject({ turns: 3, tool_calls: 3, tool_failures: 0, recorded_replayed: 1 });
    const { body } = server.requests.at(-1)!;
    expect(body).toMatchObject({ initial_count: 3, expected_count: 6, response: { object: 'response' } });
    const kinds = body.response.output.map(({ type }: { type: string }) => type);
    const turn = ['function_call', 'function_call_output'];
    expect(kinds).toEqual(['function_call', ...turn, 'function_call_output', ...turn, 'message']);
    const tokens = episode.segments.filter(({ source }) => source === 'policy').map(segment => segment.tokens.length);
    expect(body.response.usage.output_tokens).toBe(tokens.reduce((sum, n) => sum + n, 0));
  });

  it('gives the verifier the same bytes for the same answers', async () => {
    const verified = async () => {
      await run(counting(), right);
      const { created_at: _, ...response } = server.requests.at(-1)!.body.response;
      return response;
    };
    expect(await verified()).toEqual(await verified());
  });

  it('keeps the sessions of rollouts that are interleaved apart', async () => {
    const rollouts = [1, 2, 3, 4].map(initial =>
      run(counting({ initial_count: initial, expected_count: initial + 3 }), right, {}, { sample: initial }),
    );
    const episodes = (await Promise.all(rollouts)).map(({ episode }) => episode);
    expect(episodes.map(({ score }) => score)).toEqual([1, 1, 1, 1]);
    const order = server.requests.map(({ session }) => session);
    // They really were at work at the same time: the sessions' requests are not one block after another.
    expect(order.filter((session, i) => session !== order[i + 1]).length).toBeGreaterThan(6);
  });

  it('lets the policy read what a tool says whatever its status, but not call what is no tool', async () => {
    const { episode, seen } = await run(counting({ expected_count: 3 }), [
      call('increment_counter', { count: 'two' }),
      call('no/such', {}) + call('verify', { reward: 1 }),
      'no',
    ]);
    expect(seen[1]).toContain('{"detail":[{"type":"missing","loc":["body","count"]}]}');
    expect(seen[2]).toContain('{"detail":"Not Found"}');
    expect(seen[2]).toContain('{"error":"there is no tool \\"verify\\""}');
    expect(paths()).toEqual(['/seed_session', '/increment_counter', '/no/such', '/verify']);
    expect(episode.metrics).toMatchObject({ tool_failures: 3 });
    expect(episode.steps.map(({ toolFailed }) => toolFailed)).toEqual([true, true, false]);
    expect(episode.score).toBe(1);
  });

  it.each([
    ['turns', { maxTurns: 2 }, 6],
    ['length', { maxNewTokens: 20 }, 3],
  ] as const)('is verified when %s are used up, too', async (reason, limits, expected) => {
    const { episode } = await run(counting({ expected_count: expected }), right, {}, { limits });
    expect(episode.outcome).toEqual({ kind: 'truncated', reason });
    expect(paths().at(-1)).toBe('/verify');
    expect(episode.score).toBe(1);
  });

  it('is verified when the window is full, too', async () => {
    const { test } = await run(counting(), right);
    const maxTokens = test.sampler.requests[1]!.tokens.length - 4;
    const { episode } = await run(counting(), right, {}, { limits: { maxTokens } });
    expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'tokens' });
    expect(episode.steps).toHaveLength(1);
    expect(episode.score).toBe(1);
  });

  it('has the components of a reward as metrics', async () => {
    server.fault = path =>
      path === '/verify'
        ? { body: JSON.stringify({ reward: 0.5, reward_components: { style: 0.25, right: 1 } }) }
        : undefined;
    const { episode } = await run(counting(), right);
    expect(episode.score).toBe(0.5);
    expect(episode.metrics).toMatchObject({ nemo_gym_reward_style: 0.25, nemo_gym_reward_right: 1 });
  });
});

describe('in the style of Gymnasium', () => {
  const style = { style: 'gymnasium' } as const;

  it('resets, steps, and sums the rewards of the steps', async () => {
    const task = asking({ opening: 'ready?', follow_ups: ['and?', 'so?'], expected_answer: 'blue' });
    const { episode, seen } = await run(task, ['yes', 'well', 'Blue.'], style);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(rewards(episode)).toEqual([0.25, 0.25, 1]);
    expect(paths()).toEqual(['/reset', '/step', '/step', '/step']);
    expect(new Set(server.requests.slice(1).map(({ session }) => session)).size).toBe(1);
    expect(seen[1]).toContain('user\nready?<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n<|im_start|>user\nand?');
    expect(server.requests[1]!.body).not.toHaveProperty('_ng_step_request_id');
  });

  it('gives the results of calls back to the policy, and closes what the server says can be closed', async () => {
    const info = { supports_explicit_close: true, supports_step_idempotency: true };
    const task = asking(
      { follow_ups: ['go on'], expected_answer: 'done', outputs: 'sunny', info },
      { tools: [tool('weather')] },
    );
    let breaks = 1;
    server.fault = path => (path === '/step' && breaks-- > 0 ? { breakAfter: 3 } : undefined);
    const { episode, seen } = await run(task, [call('weather'), 'done'], style);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(seen[1]).toContain('<|im_start|>tool\nsunny<|im_end|>\n<|im_start|>user\ngo on');
    // The server tells a step that is sent again by its id.
    expect(paths()).toEqual(['/reset', '/step', '/step', '/step', '/close']);
    const ids = server.requests.slice(1, 4).map(({ body }) => body._ng_step_request_id);
    expect(ids).toEqual(['step-0', 'step-0', 'step-1']);
  });

  it('ends truncated by the server, or by turns', async () => {
    server.fault = path =>
      path === '/step'
        ? { body: JSON.stringify({ observation: null, reward: 2, terminated: false, truncated: true, info: null }) }
        : undefined;
    const { episode } = await run(asking({}), ['a'], style);
    expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'turns' });
    expect(episode.score).toBe(2);
    server.fault = () => undefined;
    const task = asking({ follow_ups: ['1', '2', '3'], expected_answer: 'x' });
    const { episode: cut } = await run(task, [], style, { limits: { maxTurns: 2 } });
    expect(cut.outcome).toEqual({ kind: 'truncated', reason: 'turns' });
    expect(rewards(cut)).toEqual([0.25, 0.25]);
  });
});

describe('failures', () => {
  const verdict = (body: string): Fault => ({ body });
  it.each<[string, string, Fault, string, RegExp]>([
    [
      'a seed that fails',
      '/seed_session',
      { status: 500, body: '"KeyError"' },
      'environment',
      /seed_session: status 500: KeyError/,
    ],
    [
      'a tool that hangs',
      '/increment_counter',
      { hang: true },
      'timeout',
      /tool increment_counter: no answer within 200 ms/,
    ],
    [
      'a tool that breaks off',
      '/increment_counter',
      { breakAfter: 4 },
      'tool',
      /increment_counter: .*connection broke/,
    ],
    ['a verifier that fails', '/verify', { status: 500, body: '"boom"' }, 'reward', /verify: status 500: boom/],
    [
      'a verifier that breaks off',
      '/verify',
      { breakAfter: 9 },
      'reward',
      /connection broke before the answer was whole/,
    ],
    ['a verifier that hangs', '/verify', { hang: true }, 'timeout', /verify: no answer within 200 ms/],
    [
      'a verdict without a reward',
      '/verify',
      verdict('{"reward":null}'),
      'reward',
      /reward: expected number, got null/,
    ],
    ['a reward that is NaN', '/verify', verdict('{"reward":NaN}'), 'reward', /not JSON/],
    ['a reward that is infinite', '/verify', verdict('{"reward":1e999}'), 'reward', /reward: .*Infinity/],
    ['a verdict that is none', '/verify', verdict('[1]'), 'reward', /expected object, got \[1\]/],
    ['a page', '/verify', { status: 200, body: '<html>' }, 'reward', /not JSON.*<html>/],
    ['a redirect', '/verify', { status: 307, body: '' }, 'reward', /status 307: nothing/],
    [
      'a judge that failed',
      '/verify',
      verdict('{"reward":0,"_ng_failure_class":"judge_failed","_ng_failure_judge_error":"TimeoutError: 30 s"}'),
      'reward',
      /judge_failed: TimeoutError: 30 s/,
    ],
  ])('%s', async (_, where, fault, failure, message) => {
    server.fault = path => (path === where ? fault : undefined);
    const { episode } = await run(counting(), right, {}, { limits: { callTimeoutMs: fault.hang ? 200 : 20_000 } });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure });
    expect((episode.outcome as { message: string }).message).toMatch(message);
  });

  it.each<[Fault, RegExp]>([
    [{ body: '{"reward":1}' }, /terminated: expected boolean/],
    [{ status: 400, body: '{"detail":"no session"}' }, /status 400: {"detail":"no session"}/],
    [{ body: '{"observation":1,"reward":1,"terminated":true,"truncated":false}' }, /observation: expected string/],
  ])('of a step: %j', async (fault, message) => {
    server.fault = path => (path === '/step' ? fault : undefined);
    const { episode } = await run(asking({}), ['a'], { style: 'gymnasium' });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment', step: 1 });
    expect((episode.outcome as { message: string }).message).toMatch(message);
  });

  it('a server that is down', async () => {
    await server.close();
    const { episode } = await run(counting(), right);
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment', step: 0 });
    expect(episode.outcome).toMatchObject({ message: expect.stringMatching(/seed_session: .*connection refused/) });
  });

  it('what can be repeated is, and nothing else', async () => {
    // Broken off once each: the session is begun anew, the verdict is not asked for a second time.
    server.fault = (_, __, index) => (index === 0 ? { breakAfter: 1 } : undefined);
    const { episode } = await run(counting(), ['nothing']);
    expect(paths()).toEqual(['/seed_session', '/seed_session', '/verify']);
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'reward', step: 1 });
  });

  it('one rollout fails, the others go on', async () => {
    server.fault = (path, body) =>
      path === '/seed_session' && body.initial_count === 2 ? { status: 503, body: '' } : undefined;
    const rollouts = [1, 2, 3].map(initial =>
      run(counting({ initial_count: initial, expected_count: initial + 3 }), right, {}, { sample: initial }),
    );
    const outcomes = (await Promise.all(rollouts)).map(({ episode }) => episode.outcome.kind);
    expect(outcomes).toEqual(['done', 'failed', 'done']);
  });

  it.each([
    ['no row', {}, /responses_create_params: expected object/],
    ['no input', { responses_create_params: {} }, /input: expected text or an array of items/],
    ['an item that is none', { responses_create_params: { input: [{ type: 'picture' }] } }, /row: input/],
    ['a tool of another kind', { responses_create_params: { input: 'x', tools: [{ type: 'web_search' }] } }, /tools/],
  ])('of the task: %s', async (_, metadata, message) => {
    const { episode } = await run({ ...counting(), metadata: { initial_count: 1, ...metadata } }, right);
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'environment', step: 0 });
    expect((episode.outcome as { message: string }).message).toMatch(message);
  });

  it('of the policy are its own, and a prompt that leaves no room is an overflow', async () => {
    const failing = await run(counting(), () => {
      throw new Error('out of memory');
    });
    expect(failing.episode.outcome).toMatchObject({ kind: 'failed', failure: 'provider' });
    const { episode } = await run(counting(), right, {}, { limits: { maxTokens: 20 } });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'overflow', step: 0 });
  });

  it('an abort rejects with its reason, and breaks off what is under way', async () => {
    const stop = new AbortController();
    server.fault = path => {
      if (path === '/verify') stop.abort(new Error('enough'));
      return path === '/verify' ? { hang: true } : undefined;
    };
    await expect(run(counting(), right, {}, { signal: stop.signal })).rejects.toThrow('enough');
  });
});

describe('all rollouts together', () => {
  it('are summed up by the server, failed ones left out', async () => {
    const executor = nemoGym({ server: resourcesServer(server.url) });
    const play = (initial: number, sample: number) => {
      const test = testContext({ renderer, answers: (_, i) => right[i]!, sample, limits: { maxNewTokens: 400 } });
      return executor.run(counting({ initial_count: initial }), test);
    };
    const groups = [[await play(3, 0), await play(4, 1)], [await play(3, 0)]];
    server.fault = path => (path === '/verify' ? { status: 500, body: '""' } : undefined);
    groups[1]!.push(await play(3, 1));
    const { signal } = new AbortController();
    expect(await executor.summarize!(groups, signal)).toEqual({
      'nemo_gym/mean/reward': 2 / 3,
      'nemo_gym/tasks': 2,
      'nemo_gym/pass@1': 2 / 3,
    });
    const sent = server.requests.at(-1)!.body.verify_responses;
    expect(sent.map((one: object) => Object.keys(one).sort())).toContainEqual([
      '_ng_rollout_index',
      '_ng_task_index',
      'expected_count',
      'initial_count',
      'response',
      'reward',
    ]);
    expect(await executor.summarize!([[groups[1]![1]!]], signal)).toEqual({});
  });
});
