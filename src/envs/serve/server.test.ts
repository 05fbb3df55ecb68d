import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { until } from '../../../tests/support/until.ts';
import { multiTurn } from '../../agents/multi-turn.ts';
import { declareChecks } from '../../testing/check.ts';
import { environmentSuite } from '../../testing/environment-suite.ts';
import { testContext } from '../../testing/executor-context.ts';
import { httpEnvironment } from '../clients/http/environment.ts';
import type { Action, Environment } from '../contracts.ts';
import { makeEnvironment, openEnvironment } from '../registry.ts';
import { type EnvironmentServerOptions, serveEnvironment } from './server.ts';

const key = 'tl-test';
const task = { id: 't', prompt: 'go', label: 'b', metadata: { deep: { a: [1] } } };
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function served(make: () => Environment, more: Partial<EnvironmentServerOptions> = {}) {
  const server = await serveEnvironment({ make, environment: { name: 'test' }, key, ...more });
  closing.push(() => server.close());
  return { server, url: server.url.replace('//', `//key:${key}@`) };
}

/** A server that answers as a test says. */
async function answering(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  closing.push(
    () =>
      new Promise(resolve => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function action(actionText: string, more: Partial<Action> = {}): Action {
  const actionTokens = Int32Array.from(Buffer.from(actionText));
  const { signal } = new AbortController();
  return {
    actionText,
    actionTokens,
    observationText: 'seen',
    label: 'b',
    task,
    turn: 0,
    finishReason: 'stop',
    signal,
    ...more,
  };
}
const context = () => ({ seed: 7, signal: new AbortController().signal });

/** Counts its steps; says what it was given. */
function counting(log: string[] = [], steps = 0): Environment {
  return {
    reset: ({ prompt, metadata }, { seed }) => ({ observation: `${prompt} ${seed} ${JSON.stringify(metadata)}` }),
    step({ actionText, actionTokens, observationText, turn }) {
      steps += 1;
      log.push(actionText);
      if (actionText === 'throw') throw new Error('it broke');
      return { reward: steps, done: false, feedback: `${actionTokens.length} ${observationText} ${turn}` };
    },
    fork: () => counting(log, steps),
    close: () => void log.push('closed'),
  };
}

describe('a registered game through HTTP keeps the contract', async () => {
  const { make, tasks, players, maxTurns } = openEnvironment('guess-number');
  const server = await serveEnvironment({ make, environment: { name: 'guess-number' }, key });
  afterAll(() => server.close());
  const remote = makeEnvironment(server.url.replace('//', `//key:${key}@`));
  const oracle = players?.oracle && { player: players.oracle, score: 0.5 };
  const checks = environmentSuite({ make: remote, tasks, answers: ['4', '2', '8'], maxTurns, oracle, episodes: 5 });
  declareChecks(checks, it);

  it('and plays the same episode as here', async () => {
    const play = async (factory: typeof make) => {
      const answers = ['4', 'x', '2'];
      const test = testContext({ answers: (_, index) => answers[index] ?? '', environmentSeed: 3 });
      const { id: _, ...episode } = await multiTurn(factory).run(task, test);
      return episode;
    };
    expect(await play(remote)).toEqual(await play(make));
  });
});

describe('httpEnvironment', () => {
  it('gives the environment what it needs, images too, and closes it', async () => {
    const log: string[] = [];
    const data = new Uint8Array([0, 255, 7]);
    const images = [{ mediaType: 'image/png', data }];
    const { url } = await served(() => {
      const inner = counting(log);
      return {
        ...inner,
        reset: async (task, given) => ({ ...(await inner.reset(task, given)), images: [...task.images!] }),
      };
    });
    const environment = await httpEnvironment({ url })();
    const start = await environment.reset({ ...task, images }, context());
    expect(start).toEqual({ observation: 'go 7 {"deep":{"a":[1]}}', images });
    expect(await environment.step(action('abc', { turn: 2 }))).toEqual({
      reward: 1,
      done: false,
      feedback: '3 seen 2',
    });
    await environment.close!();
    await environment.close!();
    expect(log).toEqual(['abc', 'closed']);
  });

  it('leaves out what the policy saw where it is told to', async () => {
    const { url } = await served(() => counting());
    const environment = await httpEnvironment({ url, observationText: false })();
    await environment.reset(task, context());
    expect((await environment.step(action('a'))).feedback).toBe('1  0');
  });

  it('forks', async () => {
    const { url, server } = await served(() => counting());
    const environment = await httpEnvironment({ url })();
    await environment.reset(task, context());
    await environment.step(action('a'));
    const copy = await environment.fork!();
    expect((await copy.step(action('b'))).reward).toBe(2);
    expect((await environment.step(action('c'))).reward).toBe(2);
    expect(server.sessions).toBe(2);
  });

  it('takes no step twice when an answer is lost', async () => {
    const log: string[] = [];
    const { server } = await served(() => counting(log));
    let asked = 0;
    const proxy = await answering(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { authorization = '' } = request.headers;
      const { method = '' } = request;
      const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {};
      const answer = await fetch(server.url + request.url, { method, headers: { authorization }, ...body });
      const text = await answer.text();
      // Every other answer gets lost on its way.
      if (asked++ % 2 === 0) request.socket.destroy();
      else response.writeHead(answer.status).end(text);
    });
    const environment = await httpEnvironment({ url: proxy.replace('//', `//key:${key}@`) })();
    await environment.reset(task, context());
    for (const n of [1, 2, 3]) expect((await environment.step(action(`${n}`))).reward).toBe(n);
    expect(log).toEqual(['1', '2', '3']);
    expect(asked).toBe(10);
  });

  it.each([
    ['throw', {}, 'environment', /http:\/\/127.0.0.1:\d+\/: the environment: it broke/],
    ['hang', { callTimeoutMs: 20 }, 'timeout', /the environment: no answer within 20 ms/],
  ])('fails the episode when the environment says %s', async (how, limits, failure, message) => {
    const { url } = await served(() => {
      const inner = counting();
      return how === 'hang' ? { ...inner, step: () => new Promise(() => undefined) } : inner;
    }, limits);
    const test = testContext({ answers: () => how });
    const { outcome } = await multiTurn(httpEnvironment({ url })).run(task, test);
    expect(outcome).toMatchObject({ kind: 'failed', failure });
    expect((outcome as { message: string }).message).toMatch(message);
    expect((outcome as { message: string }).message).not.toContain(key);
  });

  it.each<[string, RequestListener, string, RegExp]>([
    ['500', (_, response) => response.writeHead(500).end('no'), 'environment', /answered 500: "no"/],
    ['text', (_, response) => response.end('hello'), 'environment', /answered "hello", and not a JSON object/],
    ['another shape', (_, response) => response.end('{"fork":false,"observation":7}'), 'environment', /observation: /],
    ['nothing', () => undefined, 'timeout', /no answer within 40 ms/],
    [
      'a busy sign',
      (_, response) => response.writeHead(503).end('{"error":{"message":"full"}}'),
      'environment',
      /503: full/,
    ],
  ])('fails the episode when the server answers %s', async (_, listener, failure, message) => {
    const url = await answering(listener);
    const limits = { callTimeoutMs: failure === 'timeout' ? 40 : 5000 };
    const { outcome } = await multiTurn(httpEnvironment({ url })).run(task, testContext({ limits }));
    expect(outcome).toMatchObject({ kind: 'failed', failure });
    expect((outcome as { message: string }).message).toMatch(message);
  });

  it('fails the episode when nobody listens, or the key is wrong', async () => {
    const { url, server } = await served(() => counting());
    const play = async (at: string) => {
      const { outcome } = await multiTurn(httpEnvironment({ url: at })).run(
        task,
        testContext({ limits: { callTimeoutMs: 5000 } }),
      );
      return (outcome as { message: string }).message;
    };
    expect(await play(server.url)).toMatch(/answered 401: the key is not the one of this server/);
    await server.close();
    closing.pop();
    expect(await play(url)).toMatch(/cannot be reached: fetch failed: .*ECONNREFUSED/);
  });

  it('refuses what is no address', () => {
    expect(() => httpEnvironment({ url: 'http://' })).toThrow('"http://" is no address of an environment');
    expect(() => makeEnvironment('http://a:b')).toThrow('is no address of an environment');
    expect(() => makeEnvironment('http://here', { speed: 1 })).toThrow(/environment http:\/\/here: .*speed/);
  });
});

describe('serveEnvironment', () => {
  const ask = async (url: string, method: string, path: string, body?: unknown, given = key) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = { authorization: `Bearer ${given}` };
    const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body: text }) });
    return { status: response.status, body: (await response.json()) as { error?: { message: string } } };
  };
  const id = 'a'.repeat(16);

  it('says what it serves, to who has the key', async () => {
    const { server } = await served(() => counting(), { environment: { name: 'count', version: 2 } });
    const { status, body } = await ask(server.url, 'GET', '/');
    expect({ status, body }).toEqual({
      status: 200,
      body: { protocol: 1, name: 'count', version: 2, sessions: 0 },
    });
    expect((await ask(server.url, 'GET', '/', undefined, 'guess')).status).toBe(401);
  });

  it.each<[string, string, string, unknown, number, RegExp]>([
    ['an unknown path', 'GET', '/episodes', undefined, 404, /nothing at GET \/episodes/],
    ['a short id', 'PUT', '/sessions/a', {}, 400, /16 to 64/],
    ['another method', 'GET', `/sessions/${id}`, undefined, 405, /PUT and DELETE are/],
    [
      'an unknown session',
      'POST',
      `/sessions/${'b'.repeat(16)}/step`,
      { sequence: 0, action: action('a') },
      400,
      /actionTokens/,
    ],
    [
      'a step before the reset',
      'POST',
      `/sessions/${id}/step`,
      { sequence: 0, action: { ...action('a'), actionTokens: [] } },
      409,
      /reset before/,
    ],
    [
      'a number too many',
      'POST',
      `/sessions/${id}/reset`,
      { sequence: 5, task, seed: 1 },
      409,
      /call 5 of this session, where 1 comes next/,
    ],
    ['no JSON', 'POST', `/sessions/${id}/reset`, '{', 400, /not valid JSON/],
    ['a large body', 'POST', `/sessions/${id}/reset`, 'x'.repeat(2000), 413, /larger than 1000 bytes/],
  ])('refuses %s', async (what, method, path, body, status, message) => {
    const { server } = await served(() => counting(), { maxBodyBytes: 1000 });
    await ask(server.url, 'PUT', `/sessions/${id}`, {});
    if (what === 'a number too many')
      await ask(server.url, 'POST', `/sessions/${id}/reset`, { sequence: 0, task, seed: 1 });
    const answer = await ask(server.url, method, path, body);
    expect(answer.status).toBe(status);
    expect(answer.body.error!.message).toMatch(message);
  });

  it('has room for so many sessions, and again when one is closed', async () => {
    const { url, server } = await served(() => counting(), { maxSessions: 1 });
    const first = await httpEnvironment({ url })();
    await expect(httpEnvironment({ url })()).rejects.toThrow(/answered 503: 1 sessions are open, which is the most/);
    await first.close!();
    await httpEnvironment({ url })();
    expect(server.sessions).toBe(1);
  });

  it('closes a session that nobody asks for', async () => {
    const log: string[] = [];
    const { url, server } = await served(() => counting(log), { sessionTimeoutMs: 30 });
    const environment = await httpEnvironment({ url })();
    await until(() => server.sessions === 0);
    expect(log).toEqual(['closed']);
    await expect((async () => environment.reset(task, context()))()).rejects.toThrow(
      /answered 404: no session has this id/,
    );
  });

  it('closes every session when it is closed', async () => {
    const log: string[] = [];
    const { url, server } = await served(() => counting(log));
    await Promise.all([1, 2, 3].map(() => httpEnvironment({ url })()));
    await server.close();
    closing.pop();
    expect(log).toEqual(['closed', 'closed', 'closed']);
  });
});
