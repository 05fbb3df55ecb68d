import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type JsonServer, jsonServer, Refusal } from '../../../tests/support/json-server.ts';
import { rewardInput } from '../../../tests/support/reward-input.ts';
import { checkRewardOptions, chooseReward } from '../registry.ts';
import { type JudgeOptions, judgeReward } from './judge.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

type Message = { role: string; content: string };
type Answer = (messages: Message[]) => unknown;
const said = (content: string | null) => ({ choices: [{ message: { role: 'assistant', content } }] });

async function service(answer: Answer): Promise<JsonServer> {
  const server = await jsonServer(({ path, body }) => {
    if (path !== '/v1/chat/completions') throw new Error(`asked for ${path}`);
    return answer(body.messages);
  });
  open.push(server);
  return server;
}

const judge = (servers: readonly JsonServer[], more: Partial<JudgeOptions> = {}) =>
  judgeReward({
    urls: servers.map(({ url }) => `${url}/v1/`),
    model: 'm',
    template: '{answer}',
    wait: async () => undefined,
    ...more,
  });

describe('judgeReward', () => {
  it('asks with the filled template and maps the score to [0, 1]', async () => {
    const server = await service(() => said('Good.\n{"score": 4}'));
    const template = '{rubric}: {prompt} -> {answer} ({label}) {min} to {max} {"score": n}';
    const reward = judge([server], {
      template,
      rubric: 'be $& brief',
      min: 1,
      max: 5,
      temperature: 0.5,
      key: 'secret',
    });
    expect(await reward([rewardInput('say {label}', { label: '' })])).toEqual([
      { reward: 0.75, metrics: { judge_score: 4, judge_cached: 0 } },
    ]);
    const content = 'be $& brief: p -> say {label} ((none)) 1 to 5 {"score": n}';
    expect(server.requests.map(({ body }) => body)).toEqual([
      { model: 'm', temperature: 0.5, messages: [{ role: 'user', content }] },
    ]);
    expect(server.requests[0]!.headers.authorization).toBe('Bearer secret');
  });

  it('has a template of its own with all there is to know', async () => {
    const server = await service(() => said('Score: 10'));
    await judge([server], { template: undefined, rubric: 'rhymes count' })([
      rewardInput('an answer', { prompt: 'a task' }),
    ]);
    const [{ content }] = server.requests[0]!.body.messages;
    for (const part of ['rhymes count', 'a task', 'an answer', '\nl\n', 'from 0 (worst) to 10 (best)', '{"score":']) {
      expect(content).toContain(part);
    }
    expect(content).not.toMatch(/\{(prompt|answer|label|rubric|min|max)\}/);
  });

  it.each<[string, unknown, RegExp]>([
    ['no score', said('no idea'), /the judge's answer: no score at its end/],
    ['a score out of range', said('{"score": 11}'), /the score 11 is not between 0 and 10/],
    ['nothing', said(null), /no score at its end/],
    ['what is no completion', { choices: [] }, /no chat completion: choices/],
  ])('asks again, and fails the sample in the end, where the judge gives %s', async (_, answer, message) => {
    const server = await service(() => answer);
    const asked = judge([server], { attempts: 3 })([rewardInput('a')]);
    await expect(asked).rejects.toThrow(message);
    await expect(asked).rejects.toThrow(/no answer in 3 attempts/);
    expect(server.requests).toHaveLength(3);
  });

  it('tells a judge what was missing, and takes the score that it gives then', async () => {
    const server = await service(messages => said(messages.length === 1 ? 'seven' : '{"score": 7}'));
    expect(await judge([server])([rewardInput('a')])).toMatchObject([{ reward: 0.7 }]);
    expect(server.requests[1]!.body.messages).toMatchObject([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'seven' },
      { role: 'user', content: expect.stringContaining('no score at its end') },
    ]);
  });

  it('asks an equal question once, also while it is under way', async () => {
    const server = await service(([message]) => said(`Score: ${message!.content.length}`));
    const reward = judge([server]);
    const cachedOf = async (...texts: string[]) =>
      (await reward(texts.map(text => rewardInput(text)))).map(output => (output as { metrics: object }).metrics);
    expect(await cachedOf('a', 'bc', 'a')).toEqual([
      { judge_score: 1, judge_cached: 0 },
      { judge_score: 2, judge_cached: 0 },
      { judge_score: 1, judge_cached: 1 },
    ]);
    expect(await cachedOf('bc')).toEqual([{ judge_score: 2, judge_cached: 1 }]);
    expect(server.requests).toHaveLength(2);
  });

  it('shares the questions among services, never more than so many at a time', async () => {
    let underWay = 0;
    let most = 0;
    const slow: Answer = () => {
      underWay += 1;
      most = Math.max(most, underWay);
      return said('Score: 5');
    };
    const servers = [await service(slow), await service(slow)];
    const reward = judge(servers, { concurrency: 2 });
    const done = (text: string) => Promise.resolve(reward([rewardInput(text)])).finally(() => (underWay -= 1));
    await Promise.all(Array.from({ length: 30 }, (_, i) => done(`${i}`)));
    expect(most).toBeLessThanOrEqual(4);
    for (const { requests } of servers) expect(requests.length).toBeGreaterThan(5);
    expect(servers.flatMap(({ requests }) => requests)).toHaveLength(30);
  });

  it('goes to the other service where one is down', async () => {
    const [broken, well] = [await service(() => said('')), await service(() => said('Score: 5'))];
    broken.fail(500, 500, 500);
    const reward = judge([broken, well]);
    expect(await reward(['a', 'b', 'c'].map(text => rewardInput(text)))).toMatchObject(Array(3).fill({ reward: 0.5 }));
    expect(broken.requests.length).toBeGreaterThan(0);
  });

  it('shows the key to nobody, not even where the service repeats it', async () => {
    const server = await jsonServer(({ headers }) => {
      throw new Refusal(401, `wrong: ${headers.authorization}`);
    });
    open.push(server);
    const asked = judge([server], { key: 'k3y' })([rewardInput('a')]);
    await expect(asked).rejects.toThrow(/chat\/completions: 401 .*wrong: Bearer \(key\)/);
    await expect(asked).rejects.not.toThrow(/k3y/);
    expect(server.requests).toHaveLength(1);
  });

  it('does not ask for an episode that is over', async () => {
    const server = await service(() => said('Score: 5'));
    const over = AbortSignal.abort(new Error('over'));
    await expect(judge([server])([rewardInput('a', { signal: over })])).rejects.toThrow('over');
    expect(server.requests).toEqual([]);
  });

  it.each<[Partial<JudgeOptions>, RegExp]>([
    [{ template: 'grade {prompt}' }, /needs \{answer\}/],
    [{ rubric: 'brevity' }, /the rubric of a judge has no effect: its template has no \{rubric\}/],
    [{ min: 5, max: 5 }, /need min < max, got 5 and 5/],
    [{ concurrency: 0 }, /concurrency is a whole number ≥ 1, .* got 0 and 10000/],
    [{ urls: ['localhost:8000'] }, /the URL of a judge, .*localhost:8000/],
    [{ urls: ['http://me:pass@host/v1'] }, /the URL of a judge, http:\/\/host\/v1, must be/],
    [{ urls: ['http://host/v1?key=pass'] }, /the URL of a judge, http:\/\/host\/v1, must be/],
    [{ urls: [] }, /at least one server/],
  ])('refuses %j', (options, message) => {
    expect(() => judge([], { urls: ['http://host/v1'], ...options })).toThrow(message);
  });
});

describe('reward.remote_url judge', () => {
  it('reads rubric and template of files, and the key of the environment', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'judge-'));
    open.push({ close: () => rmSync(cwd, { recursive: true }) });
    writeFileSync(join(cwd, 'rubric.md'), 'be brief\n');
    writeFileSync(join(cwd, 'empty.md'), '\n');
    const server = await service(() => said('Score: 5'));
    const values = {
      'reward.judge.url': `${server.url}/v1`,
      'reward.judge.model': 'm',
      'reward.judge.key_env': 'KEY',
      'reward.judge.rubric': '@rubric.md',
      'reward.judge.template': '{rubric}: {answer}',
    };
    const reward = await chooseReward('judge', values, { cwd, env: { KEY: 'secret' } });
    expect(await reward([rewardInput('a')])).toMatchObject([{ reward: 0.5 }]);
    expect(server.requests[0]).toMatchObject({
      headers: { authorization: 'Bearer secret' },
      body: { messages: [{ content: 'be brief: a' }] },
    });
    await expect(
      chooseReward('judge', { ...values, 'reward.judge.rubric': '@empty.md' }, { cwd, env: { KEY: 'secret' } }),
    ).rejects.toThrow('reward.judge.rubric @empty.md: the file is empty');
  });

  it.each([
    [{}, /the reward judge needs reward\.judge\.url/],
    [{ 'reward.judge.url': 'http://host/v1' }, /the reward judge needs reward\.judge\.model/],
    [
      { 'reward.judge.url': 'http://host/v1', 'reward.judge.model': 'm', 'reward.judge.key_env': 'KEY' },
      /reward\.judge\.key_env is KEY, and this environment variable is not set/,
    ],
    [
      { 'reward.judge.url': 'http://host/v1', 'reward.judge.model': 'm', 'reward.judge.rubric': '@absent.md' },
      /reward\.judge\.rubric @absent\.md: .*no such file/,
    ],
  ])('says what is missing in %j', async (values, message) => {
    await expect(chooseReward('judge', values, { cwd: tmpdir() })).rejects.toThrow(message);
  });

  it('refuses its options where it is not chosen', () => {
    const values = { 'reward.judge.model': 'm' };
    expect(() => checkRewardOptions(['math'], values)).toThrow(
      'reward.judge.model has no effect without reward.remote_url judge',
    );
    expect(() => checkRewardOptions(['math', 'judge'], values)).not.toThrow();
  });
});
