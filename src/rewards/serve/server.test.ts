import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { gate } from '../../../tests/support/gate.ts';
import { type RewardServer, type RewardServerOptions, serveRewards } from './server.ts';

let server: RewardServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** A number that a text alone determines. */
const scoreOf = (text: string) => [...text].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) % 1009, 7);

async function start(more: Partial<RewardServerOptions> = {}): Promise<string> {
  server = await serveRewards({ scorer: async texts => texts.map(scoreOf), ...more });
  return server.url;
}

const post = (url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  fetch(url, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers });

describe('serveRewards', () => {
  it('answers as OpenRLHF does', async () => {
    const url = await start();
    const response = await post(url, { query: ['ab', 'c'], prompts: ['a', 'c'], labels: ['', 3] });
    expect(response.status).toBe(200);
    const rewards = ['ab', 'c'].map(scoreOf);
    expect(await response.json()).toEqual({ rewards, scores: rewards, extra_logs: { dummy_scores: rewards } });
    expect(await (await post(url, { query: 'ab' })).json()).toMatchObject({ rewards: [scoreOf('ab')] });
  });

  it('gives 64 clients at once their own answers, scored together', async () => {
    let batches = 0;
    const url = await start({
      scorer: async texts => {
        batches += 1;
        return texts.map(scoreOf);
      },
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.string({ maxLength: 12 }), { minLength: 1, maxLength: 4 }), {
          minLength: 64,
          maxLength: 64,
        }),
        async clients => {
          const before = batches;
          const answers = await Promise.all(
            clients.map(async query => ((await (await post(url, { query })).json()) as { rewards: number[] }).rewards),
          );
          expect(answers).toEqual(clients.map(query => query.map(scoreOf)));
          expect(batches - before).toBeLessThan(64);
        },
      ),
      { numRuns: 5 },
    );
  });

  it.each<[string, unknown, number, RegExp]>([
    ['no JSON', '{', 400, /not valid JSON/],
    ['no texts', { query: [] }, 400, /query/],
    ['texts that are none', { query: [3] }, 400, /query/],
    ['something else', { text: 'x' }, 400, /query.*got nothing/],
    ['a body that is too large', { query: 'x'.repeat(2000) }, 413, /larger than 1000 bytes/],
    ['deep nesting', '['.repeat(100), 400, /deeper than 64/],
  ])('refuses %s', async (_, body, status, message) => {
    const response = await post(await start({ maxBodyBytes: 1000 }), body);
    expect(response.status).toBe(status);
    expect(((await response.json()) as { error: { message: string } }).error.message).toMatch(message);
  });

  it('has one place that scores, which needs POST, and the key where there is one', async () => {
    const url = await start({ key: 'secret' });
    const authorization = { authorization: 'Bearer secret' };
    expect((await post(url, { query: 'a' })).status).toBe(401);
    expect((await post(url, { query: 'a' }, { authorization: 'Bearer secre' })).status).toBe(401);
    expect((await post(url, { query: 'a' }, authorization)).status).toBe(200);
    expect((await fetch(url, { headers: authorization })).status).toBe(405);
    expect((await fetch(new URL('/other', url), { headers: authorization })).status).toBe(404);
    expect((await fetch(new URL('/metrics', url))).status).toBe(401);
    expect(await (await fetch(new URL('/health', url))).json()).toEqual({ status: 'ok' });
  });

  it('tells what it did', async () => {
    const url = await start();
    await post(url, { query: ['a', 'b'] });
    await post(url, '{');
    const page = await (await fetch(new URL('/metrics', url))).text();
    expect(page).toMatch(/^tokenloop_rm_texts_total 2$/m);
    expect(page).toMatch(/^tokenloop_rm_refused_requests_total 1$/m);
    expect(page).toMatch(/^tokenloop_rm_request_seconds_bucket\{le="\+Inf"\} 1$/m);
  });

  it('fails who asked, in words, where the model says no number or breaks', async () => {
    const said: string[] = [];
    const url = await start({
      maxBatch: 1,
      onError: message => said.push(message),
      scorer: async ([text]) => {
        if (text === 'break') throw new Error('out of memory');
        return [text === 'nan' ? Number.NaN : 1];
      },
    });
    const statuses = await Promise.all(
      ['ok', 'nan', 'break', 'ok'].map(async query => (await post(url, { query })).status),
    );
    expect(statuses).toEqual([200, 500, 500, 200]);
    expect(said).toEqual([expect.stringMatching(/says NaN/), 'out of memory']);
  });

  it('asks who brings too much to come back', async () => {
    const [begun, finish] = [gate(), gate()];
    const url = await start({
      maxBatch: 1,
      maxQueue: 1,
      scorer: async texts => {
        begun.open();
        await finish.opened;
        return texts.map(() => 1);
      },
    });
    const first = post(url, { query: 'a' });
    await begun.opened;
    // One waits and one is refused, whichever comes first.
    const others = [post(url, { query: 'b' }), post(url, { query: 'c' })];
    const refused = await Promise.race(others.map(async other => (await other).status));
    expect(refused).toBe(429);
    finish.open();
    expect((await first).status).toBe(200);
    expect((await Promise.all(others)).map(({ status }) => status).sort()).toEqual([200, 429]);
  });

  it('answers what is under way before it closes, and nobody after', async () => {
    const [begun, finish] = [gate(), gate()];
    const url = await start({
      scorer: async texts => {
        begun.open();
        await finish.opened;
        return texts.map(() => 1);
      },
    });
    const pending = post(url, { query: 'a' });
    await begun.opened;
    const closing = server!.close();
    finish.open();
    expect((await pending).status).toBe(200);
    await closing;
    await expect(post(url, { query: 'a' })).rejects.toThrow();
  });
});
