import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { multiTurn } from '../../../agents/multi-turn.ts';
import { testContext } from '../../../testing/executor-context.ts';
import type { EnvironmentFactory } from '../../contracts.ts';
import { makeEnvironment } from '../../registry.ts';
import { gemEnvironment } from './environment.ts';

/** The client, against a bridge in Node; the bridge in Python is in tests/gem-bridge.test.ts. */

const script = resolve('tests/support/gem-bridge.mjs');
const bridge = (mode = '', id = 'game:Test') =>
  gemEnvironment({ id, bridge: [process.execPath, script, mode], processes: 1 });
const task = { id: 't', prompt: '', label: '', metadata: {} };

function play(factory: EnvironmentFactory, answers: readonly string[], callTimeoutMs = 20_000) {
  const context = testContext({ answers: (_, index) => answers[index] ?? 'x', limits: { callTimeoutMs } });
  return multiTurn(factory).run(task, context);
}
const failed = (step: number, message: RegExp) => ({
  kind: 'failed',
  failure: 'environment',
  step,
  message: expect.stringMatching(message),
});

describe('gemEnvironment', () => {
  it('plays an episode, joining what GEM puts around an observation', async () => {
    const environment = await bridge()();
    const { signal } = new AbortController();
    expect(await environment.reset(task, { seed: 5, signal })).toEqual({
      observation: [{ role: 'user', content: 'seed 5\ngo on' }],
      suffix: 'go on',
    });
    await environment.close!();
    const { outcome, steps } = await play(bridge(), ['a', 'b', 'c', 'd']);
    expect(outcome).toEqual({ kind: 'done' });
    expect(steps.map(({ reward }) => reward)).toEqual([1, 1, 1]);
  });

  it.each([
    ['die', /bridge .*gem-bridge.mjs : it ended \(exit code 5\); it said on stderr: the bridge of the test/],
    ['odd', /the bridge answered in another shape: .*reward/],
    ['text', /it answered "hello", and not \{id, ok\} or \{id, error\} as JSON/],
    ['order', /it answered request \d+ where the answer to \d+ was due/],
  ])('fails the episode in which the bridge does this: %s; the next one goes on', async (how, message) => {
    const factory = bridge();
    const { outcome } = await play(factory, ['a', how]);
    expect(outcome).toEqual(failed(1, message));
    expect((await play(factory, [])).outcome).toEqual({ kind: 'done' });
  });

  it('ends a process that hangs: its other episodes fail, later ones go on', async () => {
    const factory = bridge();
    const other = await factory();
    const { outcome } = await play(factory, ['hang'], 500);
    expect(outcome).toMatchObject({ kind: 'failed', failure: 'timeout', step: 0 });
    const { signal } = new AbortController();
    await expect((async () => other.reset(task, { seed: 1, signal }))()).rejects.toThrow(
      /it gave no answer in time, and was ended/,
    );
    await other.close!();
    expect((await play(factory, [])).outcome).toEqual({ kind: 'done' });
  });

  it.each([
    [bridge('no-gem'), /No module named 'gem'; the bridge needs a Python with the package gem-llm/],
    [bridge('', 'game:None'), /ValueError: Environment game:None not found in registry/],
    [gemEnvironment({ id: 'x', python: 'no-such-python' }), /it cannot be started: spawn no-such-python ENOENT/],
  ])('says what is missing', async (factory, message) => {
    expect((await play(factory, [])).outcome).toEqual(failed(0, message));
  });

  it('goes by the names of GEM', () => {
    expect(() => makeEnvironment('gem:')).toThrow('names no environment');
    expect(() => makeEnvironment('gem:game:Wordle-v0-easy', { processes: 0 })).toThrow(/environment gem:.*processes/);
  });
});
