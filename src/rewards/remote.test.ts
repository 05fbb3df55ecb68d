import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { rewardInput } from '../../tests/support/reward-input.ts';
import { type RemoteRewardOptions, remoteReward } from './remote.ts';
import { serveRewards } from './serve/server.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

const scoreOf = (text: string) => [...text].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) % 1009, 7);

async function ours(wrong?: (text: string) => number): Promise<string> {
  const server = await serveRewards({ scorer: async texts => texts.map(wrong ?? scoreOf) });
  open.push(server);
  return server.url;
}

/** A server that answers as it likes. */
async function theirs(answer: (body: { query: string[] }) => { status?: number; body?: unknown; type?: string }) {
  const asked: { query: string[]; prompts: string[]; labels: string[] }[] = [];
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const parsed = JSON.parse(Buffer.concat(chunks).toString());
    asked.push(parsed);
    const { status = 200, body, type = 'application/json' } = answer(parsed);
    if (body === undefined && status === 200) return; // hangs
    response.writeHead(status, { 'content-type': type });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  open.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/get_reward`, asked };
}

const remote = (urls: readonly string[], more: Partial<RemoteRewardOptions> = {}) =>
  remoteReward({ urls, wait: async () => undefined, ...more });

const right = ({ query }: { query: string[] }) => ({ body: { rewards: query.map(scoreOf) } });

describe('remoteReward', () => {
  it('brings answers of many episodes together and swaps none, over several servers', async () => {
    const reward = remote([await ours(), await ours(), await ours()]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ maxLength: 8 }), { minLength: 1, maxLength: 80 }), async texts => {
        const results = await Promise.all(texts.map(text => reward([rewardInput(text)])));
        expect(results).toMatchObject(texts.map(text => [{ reward: scoreOf(`p${text}`) }]));
      }),
      { numRuns: 5 },
    );
  });

  it('takes rewards of tokens and steps, with or without their sum', async () => {
    const { url } = await theirs(({ query }) => ({
      body: { token_rewards: query.map(text => [text.length, 0.5]), step_rewards: query.map(() => [1]) },
    }));
    expect(await remote([url])([rewardInput('a'), rewardInput('bc')])).toEqual([
      { reward: 3.5, tokens: [2, 0.5], steps: [1], metrics: {} },
      { reward: 4.5, tokens: [3, 0.5], steps: [1], metrics: {} },
    ]);
    const given = await theirs(() => ({ body: { rewards: [2], token_rewards: [[0.5]] } }));
    expect(await remote([given.url])([rewardInput('a')])).toEqual([{ reward: 2, tokens: [0.5], metrics: {} }]);
  });

  it('sends what OpenRLHF sends, and takes what its servers answer', async () => {
    const { url, asked } = await theirs(({ query }) => ({
      body: {
        rewards: query.map(() => [0.5]),
        scores: query.map((_, i) => i),
        extra_logs: { length: query.map(text => text.length), shared: 3, odd: 'text' },
      },
    }));
    const results = await remote([url])([rewardInput('a'), rewardInput('bc')]);
    expect(asked).toEqual([{ query: ['pa', 'pbc'], prompts: ['p', 'p'], labels: ['l', 'l'] }]);
    expect(results).toEqual([
      { reward: 0.5, score: 0, metrics: { length: 2, shared: 3 } },
      { reward: 0.5, score: 1, metrics: { length: 3, shared: 3 } },
    ]);
  });

  it.each<[string, Parameters<typeof theirs>[0], RegExp]>([
    ['500', () => ({ status: 500, body: { error: 'oops' } }), /500 .*oops/],
    ['the wrong length', () => ({ body: { rewards: [1, 2, 3] } }), /asked about 1 answers and gave 3 rewards/],
    [
      'the wrong number of lists',
      () => ({ body: { token_rewards: [[1], [2]] } }),
      /1 answers and gave 2 token_rewards/,
    ],
    ['no list for an answer', () => ({ body: { rewards: [1], step_rewards: [1] } }), /step_rewards\[0\]/],
    ['the wrong number of scores', () => ({ body: { rewards: [1], scores: [] } }), /gave 0 scores/],
    ['NaN', () => ({ body: '{"rewards": [NaN]}' }), /is not JSON/],
    ['null for NaN', () => ({ body: { rewards: [null] } }), /rewards\[0\]/],
    ['HTML', () => ({ body: '<html>hello</html>', type: 'text/html' }), /text\/html, which is not JSON: <html>/],
    ['something else', () => ({ body: { result: 1 } }), /rewards: .*got nothing/],
    ['nothing in time', () => ({}), /no answer within 50 ms/],
  ])('fails the episode where the only server answers %s, and gives no 0', async (what, answer, message) => {
    const { url, asked } = await theirs(answer);
    const timeoutMs = what === 'nothing in time' ? 50 : 20_000;
    await expect(remote([url], { attempts: 2, timeoutMs })([rewardInput('a')])).rejects.toThrow(message);
    expect(asked).toHaveLength(2);
  });

  it.each<[string, Parameters<typeof theirs>[0]]>([
    ['answers 500', () => ({ status: 500, body: {} })],
    ['hangs', () => ({})],
    ['gives the wrong length', () => ({ body: { rewards: [] } })],
    ['gives HTML', () => ({ body: '<p>', type: 'text/html' })],
  ])('gets every score from the other server where one %s', async (what, answer) => {
    const { url } = await theirs(answer);
    const reward = remote([url, await ours()], { timeoutMs: what === 'hangs' ? 1000 : 20_000, openMs: 60_000 });
    const texts = Array.from({ length: 40 }, (_, i) => `text ${i}`);
    const results = await Promise.all(texts.map(text => reward([rewardInput(text)])));
    expect(results).toMatchObject(texts.map(text => [{ reward: scoreOf(`p${text}`) }]));
  });

  it('goes on with the server that is left when one is killed', async () => {
    const [first, second] = [await ours(), await ours()];
    const reward = remote([first, second], { openMs: 60_000 });
    const round = async () =>
      Promise.all(Array.from({ length: 20 }, async (_, i) => (await reward([rewardInput(`${i}`)]))[0]));
    const before = await round();
    await open[0]!.close();
    expect(await round()).toEqual(before);
  });

  it('fails the one answer that a server refuses, not those sent with it', async () => {
    const { url, asked } = await theirs(body =>
      body.query.includes('pbad') ? { status: 422, body: 'unreadable' } : right(body),
    );
    const reward = remote([url]);
    const outcomes = await Promise.allSettled(['good', 'bad', 'fine'].map(text => reward([rewardInput(text)])));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((outcomes[1] as PromiseRejectedResult).reason.message).toMatch(/422 unreadable/);
    expect(asked[0]!.query).toHaveLength(3);
  });

  it('sends the key, and shows it to nobody', async () => {
    const server = await serveRewards({ scorer: async texts => texts.map(() => 1), key: 'secret' });
    open.push(server);
    expect(await remote([server.url], { key: 'secret' })([rewardInput('a')])).toMatchObject([{ reward: 1 }]);
    const refused = remote([server.url], { key: 'other-secret' })([rewardInput('a')]);
    await expect(refused).rejects.toThrow(/401/);
    await expect(refused).rejects.not.toThrow(/other-secret/);
  });

  it('names a server that cannot be reached', async () => {
    const reward = remote(['http://127.0.0.1:9/get_reward'], { attempts: 1 });
    await expect(reward([rewardInput('a')])).rejects.toThrow(/127\.0\.0\.1:9\/get_reward: cannot be reached \(.+\)/);
  });

  it('does not ask for an episode that is over', async () => {
    const { url, asked } = await theirs(right);
    const over = AbortSignal.abort(new Error('over'));
    await expect(remote([url])([{ ...rewardInput('a'), signal: over }])).rejects.toThrow('over');
    expect(asked).toEqual([]);
  });
});
