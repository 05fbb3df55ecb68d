import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import { type OpenEnvServer, openEnvServer } from '../../../../tests/support/openenv-server.ts';
import { until } from '../../../../tests/support/until.ts';
import { multiTurn } from '../../../agents/multi-turn.ts';
import { byteRenderer } from '../../../testing/byte-tokenizer.ts';
import { testContext } from '../../../testing/executor-context.ts';
import { makeEnvironment } from '../../registry.ts';
import { openEnv } from './environment.ts';

let server: OpenEnvServer;
beforeAll(async () => {
  server = await openEnvServer();
});
afterAll(() => server.close());

const task = { id: 't', prompt: '', label: '', metadata: {} };
function play(parameters: Record<string, unknown>, answers: readonly string[], callTimeoutMs = 20_000) {
  const context = testContext({ answers: (_, index) => answers[index] ?? 'x', limits: { callTimeoutMs } });
  return multiTurn(makeEnvironment(`openenv:${server.url}`, parameters)).run(task, context);
}
const text = { action_key: 'message', observation_key: 'echoed' };

describe('openEnv', () => {
  it('plays an episode over a connection of its own, and closes it', async () => {
    const environment = await openEnv({ url: server.url, reset: { level: 2 } })();
    const { signal } = new AbortController();
    expect(await environment.reset(task, { seed: 9, signal })).toEqual({
      observation: [{ role: 'user', content: '{"echoed":"seed 9","steps":0}' }],
    });
    expect(server.frames.at(-1)).toEqual({ type: 'reset', data: { seed: 9, level: 2 } });
    await environment.close!();
    await until(() => server.connections === 0);
    expect(server.frames.at(-1)).toEqual({ type: 'close' });

    const { outcome, steps } = await play(text, ['a', 'b', 'c', 'd']);
    expect(outcome).toEqual({ kind: 'done' });
    expect(steps.map(({ reward }) => reward)).toEqual([0.5, 0.5, 0.5]);
  });

  it('takes the answer as the action where no field is named; what is none is told to the policy', async () => {
    const { outcome, steps, segments } = await play({}, [
      'hello',
      '[1]',
      '{"text":"a"}',
      '{"message":"a"}',
      '{"message":"b"}',
      '{"message":"c"}',
    ]);
    expect(outcome).toEqual({ kind: 'done' });
    const observed = segments
      .filter(({ source }) => source === 'environment')
      .map(({ tokens }) => byteRenderer().decode(tokens));
    expect(observed.find(said => said.includes('refused'))).toContain(
      'An action is a JSON object, and this one was refused: message: Field required',
    );
    expect(steps.map(({ reward, isVoid }) => [reward, isVoid ?? false])).toEqual([
      [0, true],
      [0, true],
      [0, true],
      [0.5, false],
      [0.5, false],
      [0.5, false],
    ]);
  });

  it.each([
    ['die', /OpenEnv ws:\/\/127.0.0.1:\d+\/ws: the connection was closed \(code 1006\)/],
    ['refuse', /OpenEnv ws:.*: not now \(EXECUTION_ERROR\)/],
    ['odd', /the reply to step has another shape: reward: /],
    ['text', /it replied "hello", and not \{type, data\}/],
  ])('fails the episode in which the server does this: %s', async (how, message) => {
    const { outcome } = await play(text, ['a', how]);
    expect(outcome).toEqual({
      kind: 'failed',
      failure: 'environment',
      step: 1,
      message: expect.stringMatching(message),
    });
    await until(() => server.connections === 0);
  });

  it('fails the episode when a reply comes that nobody asked for', async () => {
    const { outcome } = await play({ action_key: 'message' }, ['chatter', 'a']);
    expect(outcome).toMatchObject({ kind: 'failed', failure: 'environment' });
  });

  it('fails the episode whose reply does not come, and leaves no connection', async () => {
    const { outcome } = await play(text, ['hang'], 300);
    expect(outcome).toMatchObject({ kind: 'failed', failure: 'timeout', step: 0 });
    await until(() => server.connections === 0);
  });

  it('leaves a server that does not close what it is told to close', async () => {
    const deaf = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await new Promise(resolve => deaf.once('listening', resolve));
    const { port } = deaf.address() as AddressInfo;
    const environment = await openEnv({ url: `ws://127.0.0.1:${port}` })();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const closed = environment.close!();
    vi.advanceTimersByTime(2000);
    vi.useRealTimers();
    await closed;
    await until(() => deaf.clients.size === 0);
    deaf.close();
  });

  it('says what cannot be reached, and which field is not there', async () => {
    const { outcome } = await play({ ...text, observation_key: 'board' }, []);
    expect(outcome).toMatchObject({
      message: expect.stringMatching(/the observation has no board; it has: echoed, steps/),
    });
    const gone = await openEnvServer();
    await gone.close();
    await expect((async () => openEnv({ url: gone.url })())()).rejects.toThrow(
      /OpenEnv ws:.* cannot be reached: .*ECONNREFUSED/,
    );
    await expect((async () => openEnv({ url: `${server.url}/x` })())()).rejects.toThrow(
      /cannot be reached: Unexpected server response: 400/,
    );
    expect(() => makeEnvironment('openenv:here')).toThrow('"here" is no address of OpenEnv');
  });
});
