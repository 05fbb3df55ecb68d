import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testContext } from '../../testing/executor-context.ts';
import { recordEpisode } from '../session.ts';
import { Recording } from './recording.ts';
import { type Endpoint, RecordingServer } from './server.ts';

const task = { id: 't', prompt: 'q', label: '', metadata: {} };
// biome-ignore lint/suspicious/noExplicitAny: replies are read as a client in JavaScript reads them
type Json = any;

const server = await RecordingServer.start({ maxBodyBytes: 2 ** 20, maxEpisodes: 3 });
const closers: (() => void)[] = [];
const context = testContext({ answers: () => 'a b', limits: { maxTurns: 1e9, maxTokens: 512 } });

/** An open episode that lasts as long as the tests. */
async function openEpisode(): Promise<Endpoint> {
  return new Promise(resolve => {
    const running = recordEpisode(task, context, async session => {
      const opened = server.open(new Recording(session));
      resolve(opened);
      await new Promise<void>(end => closers.push(end));
      opened.close();
      return { kind: 'done' };
    });
    closers.push(() => void running);
  });
}

let one: Endpoint;
let two: Endpoint;
beforeAll(async () => {
  one = await openEpisode();
  two = await openEpisode();
});
afterAll(async () => {
  for (const close of closers) close();
  await server.close();
});

async function send(url: string, key: string, body?: unknown, method = 'POST', headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, json: () => JSON.parse(text) as Json };
}
const chat = (body: unknown, at = one) => send(`${at.baseURL}/chat/completions`, at.apiKey, body);
const question = { model: 'policy', messages: [{ role: 'user', content: 'q' }] };

describe('a key', () => {
  it('opens its own episode alone, and the server listens on loopback', async () => {
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const unknown = `${server.url}/e/nothing/v1`;
    for (const [url, key] of [
      [one.baseURL, two.apiKey],
      [two.baseURL, one.apiKey],
      [one.baseURL, ''],
      [unknown, one.apiKey],
    ] as const) {
      for (const path of ['chat/completions', 'responses', 'messages', 'rewards', 'models', 'x']) {
        const reply = await send(`${url}/${path}`, key, { reward: 1, ...question });
        expect([path, reply.status]).toEqual([path, 401]);
        expect(reply.text).toContain('no open episode has this URL and this key');
      }
    }
    expect((await chat(question)).status).toBe(200);
    const anthropic = { ...question, max_tokens: 5 };
    const headers = { 'x-api-key': one.apiKey };
    expect((await send(`${one.baseURL}/messages`, '', anthropic, 'POST', headers)).status).toBe(200);
  });
});

it('opens no more episodes than it may', async () => {
  const third = server.open({} as Recording);
  expect(() => server.open({} as Recording)).toThrow('3 episodes are open');
  third.close();
});

describe('too many requests at the same time', () => {
  /** Sends one more than the limit to a policy that answers when it is let go. Returns the status of each. */
  async function flood(limited: RecordingServer, requests: number): Promise<number[]> {
    let letGo: () => void = () => undefined;
    const held = new Promise<void>(resolve => {
      letGo = resolve;
    });
    let under = 0;
    const policy = {
      ...context.policy,
      generate: (request: Parameters<typeof context.policy.generate>[0]) => {
        under += 1;
        if (under === requests) letGo();
        return held.then(() => context.policy.generate(request));
      },
    };
    const statuses: number[] = [];
    await recordEpisode(task, { ...context, policy }, async session => {
      const at = limited.open(new Recording(session));
      const ask = async (content: string) => {
        const reply = await send(`${at.baseURL}/chat/completions`, at.apiKey, {
          ...question,
          messages: [{ role: 'user', content }],
        });
        if (reply.status === 429) {
          expect(reply.json().error.type).toBe('rate_limit_error');
          letGo();
        }
        statuses.push(reply.status);
      };
      await Promise.all(Array.from({ length: requests }, (_, i) => ask(`q${i}`)));
      at.close();
      return { kind: 'done' };
    });
    return statuses.sort();
  }

  it('are refused by the server, and by each episode', async () => {
    const small = await RecordingServer.start({ maxConcurrent: 3 });
    expect(await flood(small, 4)).toEqual([200, 200, 200, 429]);
    await small.close();
    expect(await flood(server, 65)).toEqual([...Array.from({ length: 64 }, () => 200), 429]);
  });
});

describe('a bad request', () => {
  it.each<[string, unknown, number, RegExp]>([
    ['malformed JSON', '{"model":', 400, /not valid JSON/],
    ['no object', '[]', 400, /must be a JSON object/],
    ['nothing', '', 400, /not valid JSON/],
    ['deep nesting', `{"model":"policy","messages":${'['.repeat(1e5)}${']'.repeat(1e5)}}`, 400, /nests deeper/],
    ['an unknown model', { ...question, model: 'gpt' }, 404, /no model /],
    ['a wrong role', { ...question, messages: [{ role: 'wizard', content: 'q' }] }, 400, /messages\[0\]|role/],
    ['no messages', { ...question, messages: [] }, 400, /messages/],
    [
      'content of a wrong type',
      { ...question, messages: [{ role: 'user', content: 5 }] },
      400,
      /expected text or an array/,
    ],
    [
      'an image',
      { ...question, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] },
      400,
      /only text/,
    ],
    [
      'a broken tool schema',
      { ...question, tools: [{ type: 'function', function: { name: 'x', parameters: { type: 'array' } } }] },
      400,
      /parameters/,
    ],
    ['a tool without a name', { ...question, tools: [{ type: 'function', function: {} }] }, 400, /name/],
    ['a negative limit', { ...question, max_tokens: -1 }, 400, /max_tokens/],
    ['no answers', { ...question, n: 0 }, 400, /n/],
    [
      'more text than fits',
      { ...question, messages: [{ role: 'user', content: 'x'.repeat(1000) }] },
      400,
      /leaves no room/,
    ],
    ['10 MB', { ...question, messages: [{ role: 'user', content: 'x'.repeat(1e7) }] }, 413, /larger than/],
  ])('%s', async (_, body, status, message) => {
    const reply = await chat(body);
    expect([reply.status, reply.text.slice(0, 200)]).toEqual([status, expect.stringMatching(message)]);
    const { error } = reply.json();
    expect(error).toMatchObject({ type: 'invalid_request_error', message: expect.any(String), param: null });
    if (status === 404) expect(error.code).toBe('model_not_found');
  });

  it.each([
    ['GET', 'chat/completions', 405],
    ['POST', 'embeddings', 404],
    ['GET', 'models/none', 404],
    ['GET', 'models/%ff', 400],
  ])('%s %s', async (method, path, status) => {
    const reply = await send(`${one.baseURL}/${path}`, one.apiKey, method === 'POST' ? question : undefined, method);
    expect([reply.status, reply.json().error.type]).toEqual([status, 'invalid_request_error']);
  });

  it('lists its models', async () => {
    const reply = await send(`${one.baseURL}/models`, one.apiKey, undefined, 'GET');
    expect(reply.json()).toMatchObject({ object: 'list', data: [{ id: 'policy', object: 'model' }] });
    expect((await send(`${one.baseURL}/models/policy`, one.apiKey, undefined, 'GET')).status).toBe(200);
  });
});

describe('whatever is sent', () => {
  const part = fc.record(
    { type: fc.constantFrom('text', 'input_text', 'image_url', 'tool_use', 'tool_result', 'x'), text: fc.jsonValue() },
    { requiredKeys: [] },
  );
  const plain = fc.record({ role: fc.constantFrom('user', 'assistant'), content: fc.string({ maxLength: 20 }) });
  const strange = fc.oneof(
    fc.record(
      {
        role: fc.constantFrom('user', 'assistant', 'system', 'tool', 'wizard', 5),
        content: fc.oneof(fc.string(), fc.constant(null), fc.array(part, { maxLength: 3 }), fc.jsonValue()),
        tool_calls: fc.oneof(
          fc.jsonValue(),
          fc.array(
            fc.record({
              id: fc.string(),
              type: fc.constant('function'),
              function: fc.record({ name: fc.string(), arguments: fc.oneof(fc.string(), fc.json()) }),
            }),
            { maxLength: 2 },
          ),
        ),
        tool_call_id: fc.oneof(fc.string(), fc.integer()),
        type: fc.constantFrom('message', 'function_call', 'function_call_output', 'reasoning', 'item_reference'),
        call_id: fc.string(),
        id: fc.string(),
      },
      { requiredKeys: [] },
    ),
    fc.jsonValue(),
  );
  const message = fc.oneof({ weight: 6, arbitrary: plain }, { weight: 1, arbitrary: strange });
  const messages = fc.oneof(
    { weight: 5, arbitrary: fc.array(message, { maxLength: 4 }) },
    { weight: 1, arbitrary: fc.jsonValue() },
  );
  const often = (valid: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 8, arbitrary: valid }, { weight: 1, arbitrary: fc.jsonValue() });
  const tool = { type: 'function', name: 'f', input_schema: {}, function: { name: 'f' } };
  const body = fc.record(
    {
      model: fc.constantFrom('policy', 'policy', 'policy', 'other', null),
      messages,
      input: fc.oneof(fc.string(), messages),
      instructions: often(fc.string()),
      system: often(fc.string()),
      max_tokens: often(fc.constant(3)),
      tools: often(fc.constant([tool])),
      tool_choice: often(fc.constantFrom('auto', 'none', 'required')),
      stop: often(fc.string({ minLength: 1 })),
      stream: often(fc.boolean()),
      n: often(fc.integer({ min: 1, max: 4 })),
      logprobs: often(fc.boolean()),
      previous_response_id: often(fc.constant(null)),
      reward: often(fc.integer()),
    },
    { requiredKeys: ['model'] },
  );
  const text = fc.oneof(
    { weight: 8, arbitrary: body.map(value => JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.json() },
    { weight: 1, arbitrary: fc.string() },
  );

  it('it never answers 500 and never stops', async () => {
    const path = fc.constantFrom('chat/completions', 'responses', 'messages', 'rewards');
    let served = 0;
    await fc.assert(
      fc.asyncProperty(path, text, async (where, sent) => {
        const { status } = await send(`${one.baseURL}/${where}`, one.apiKey, sent);
        if (status === 200) served += 1;
        expect([200, 400, 401, 404, 413]).toContain(status);
      }),
      { numRuns: 1500, seed: 7 },
    );
    expect(served).toBeGreaterThan(50);
    expect((await chat(question)).status).toBe(200);
  });
});
