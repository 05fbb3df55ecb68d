import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostOptions } from '../../../tests/support/engines.ts';
import { goldenModel } from '../../../tests/support/goldens.ts';
import { DEFAULT_SAMPLING, type Generation } from '../contracts.ts';
import { EngineHost } from './host.ts';
import type { FromHost, ToHost } from './protocol.ts';

/** A host without its thread: the test decides at which turn of the event loop a message arrives. */

const turn = () => new Promise(resolve => setImmediate(resolve));
const V = 40;

let host: EngineHost;
let received: FromHost[];
let calls = 0;
beforeEach(() => {
  received = [];
  const options = { sampler: { maxRows: 5, prefillTokens: 16 } };
  host = new EngineHost(hostOptions(goldenModel('grouped-tied'), options), message => received.push(message));
});
afterEach(() => answerOf('close'));

type Call = Extract<ToHost, { type: 'call' }>;

/** Sends a call and waits for its answer. */
async function answerOf(method: Call['method'], ...args: readonly unknown[]): Promise<FromHost> {
  const id = 1_000_000 + calls++;
  host.receive({ type: 'call', id, method, args });
  for (;;) {
    const answer = received.find(message => 'id' in message && message.id === id);
    if (answer !== undefined) return answer;
    await turn();
  }
}

/** Requests of which some share their prompt. */
function submit(ids: readonly number[]): void {
  const requests = ids.map(id => ({
    id,
    tokens: Int32Array.from({ length: 3 + 4 * (id % 3) }, (_, t) => (t + (id % 3)) % V),
    params: { ...DEFAULT_SAMPLING, maxTokens: 4 + (id % 7) },
    seed: id,
    streaming: true,
  }));
  host.receive({ type: 'submit', requests });
}

function finished(): Map<number, Generation> {
  const all = received.flatMap(message => (message.type === 'sampled' ? message.finished : []));
  expect(new Set(all.map(([id]) => id)).size).toBe(all.length);
  return new Map(all);
}

async function allFinished(ids: readonly number[]): Promise<Map<number, Generation>> {
  while (ids.some(id => !finished().has(id))) {
    expect(received.filter(message => message.type === 'failed')).toEqual([]);
    await turn();
  }
  return finished();
}

const ids = Array.from({ length: 12 }, (_, i) => i);

/** What each request gets when nothing interferes. */
async function undisturbed(): Promise<Map<number, Generation>> {
  submit(ids);
  const result = await allFinished(ids);
  received = [];
  return result;
}

function expectPart(actual: Generation, whole: Generation): void {
  const { tokens, logprobs, versions, finishReason } = actual;
  if (finishReason !== 'abort') expect(finishReason).toBe(whole.finishReason);
  expect(tokens).toEqual(whole.tokens.subarray(0, finishReason === 'abort' ? tokens.length : undefined));
  expect([logprobs.length, versions.length]).toEqual([tokens.length, tokens.length]);
  // Other rows beside it, so float32 sums in another order.
  for (const [t, value] of logprobs.entries()) expect(Math.abs(value - whole.logprobs[t]!)).toBeLessThan(1e-5);
}

describe('messages that arrive inside a step', () => {
  it.each([0, 1, 3, 5, 13])('abort one request and no other (%d turns after they came)', async turns => {
    const expected = await undisturbed();
    submit(ids);
    for (let i = 0; i < turns; i++) await turn();
    // Beginning, sharing a prompt that is being computed, and still waiting.
    for (const id of [0, 3, 11]) host.receive({ type: 'abort', id });
    const results = await allFinished(ids);
    for (const id of ids) {
      expectPart(results.get(id)!, expected.get(id)!);
      if (![0, 3, 11].includes(id)) expect(results.get(id)!.finishReason).toBe('length');
    }
    expect(results.get(11)!.finishReason).toBe('abort');
  });

  it.each([0, 1, 3, 5, 13])('end all requests (%d turns after they came)', async turns => {
    const expected = await undisturbed();
    submit(ids);
    for (let i = 0; i < turns; i++) await turn();
    await answerOf('pause', 'abort');
    const aborted = finished();
    expect([...aborted.keys()].sort((a, b) => a - b)).toEqual(ids);
    for (const id of ids) expectPart(aborted.get(id)!, expected.get(id)!);
    received = [];
    await answerOf('resume');
    submit(ids);
    const again = await allFinished(ids);
    for (const id of ids) expectPart(again.get(id)!, expected.get(id)!);
  });

  it('pause and go on without a trace', async () => {
    const expected = await undisturbed();
    submit(ids);
    for (let i = 0; i < 30; i++) {
      await answerOf('pause', 'keep');
      const count = received.length;
      for (let j = 0; j < i % 4; j++) await turn();
      expect(received.length).toBe(count);
      await answerOf('resume');
    }
    const results = await allFinished(ids);
    for (const id of ids) {
      expectPart(results.get(id)!, expected.get(id)!);
      const streamed = received.flatMap(message => (message.type === 'sampled' ? message.tokens : []));
      expect(streamed.filter(([of]) => of === id).map(([, token]) => token)).toEqual([...expected.get(id)!.tokens]);
    }
  });

  it('refuse to sleep, and free the caches when nothing is left to do', async () => {
    submit([1]);
    expect(await answerOf('sleep')).toMatchObject({
      type: 'error',
      error: { message: expect.stringMatching(/cannot sleep while requests are in flight/) },
    });
    await allFinished([1]);
    expect(await answerOf('sleep')).toMatchObject({ type: 'result' });
  });
});

describe('a step that fails', () => {
  it('ends the requests that it had, with the error, and later ones are served', async () => {
    const expected = await undisturbed();
    const { value } = (await answerOf('weights')) as { value: Float32Array };
    await answerOf(
      'setWeights',
      value.map(() => Number.NaN),
      1,
    );
    submit(ids);
    let failed: FromHost | undefined;
    while (failed === undefined) {
      await turn();
      failed = received.find(message => message.type === 'failed');
    }
    expect(failed).toMatchObject({
      ids: expect.arrayContaining(ids),
      error: { message: expect.stringMatching(/NaN/) },
    });
    await answerOf('setWeights', value, 0);
    submit([100]);
    while (!finished().has(100)) await turn();
    received = [];
    submit(ids);
    const again = await allFinished(ids);
    for (const id of ids) expectPart(again.get(id)!, expected.get(id)!);
  });
});
