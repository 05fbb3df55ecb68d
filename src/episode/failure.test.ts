import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { boundary, EpisodeError, messageOf } from './failure.ts';

const never = () => new Promise<never>(() => undefined);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('boundary', () => {
  it('gives what the call gives, synchronous or not, and leaves no timer', async () => {
    const { signal } = new AbortController();
    expect(await boundary('tool', 'search', () => 1)).toBe(1);
    expect(await boundary('tool', 'search', async () => 2, { timeoutMs: 50, signal })).toBe(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ['throws', () => fail('boom')],
    ['rejects', () => Promise.reject(new Error('boom'))],
  ])('attributes what a call that %s says, and keeps the cause', async (_, call) => {
    for (const options of [{}, { timeoutMs: 50 }]) {
      const error = await boundary('environment', 'environment.step', call, options).catch(reason => reason);
      expect(error).toBeInstanceOf(EpisodeError);
      expect(error).toMatchObject({ failureClass: 'environment', message: 'environment.step: boom' });
      expect(messageOf(error.cause)).toBe('boom');
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  it('attributes things thrown that are not errors', async () => {
    await expect(boundary('reward', 'reward', () => Promise.reject('no'))).rejects.toThrow('reward: no');
  });

  it('lets the inner class stand', async () => {
    const inner = new EpisodeError('tool', 'search failed');
    await expect(boundary('environment', 'step', () => Promise.reject(inner))).rejects.toBe(inner);
  });

  it('fails at the deadline and not before', async () => {
    const settled = vi.fn();
    const pending = boundary('environment', 'environment.reset', never, { timeoutMs: 100 }).catch(settled);
    await vi.advanceTimersByTimeAsync(99);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await pending;
    expect(settled.mock.calls[0]![0]).toMatchObject({
      failureClass: 'timeout',
      message: expect.stringMatching(/^environment\.reset: no answer within 100 ms/),
    });
  });

  it('does not leave a call that fails after its deadline unhandled', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    let reject: (error: Error) => void = () => undefined;
    const late = () => new Promise<never>((_, no) => (reject = no));
    const pending = boundary('environment', 'step', late, { timeoutMs: 10 }).catch(error => error);
    await vi.advanceTimersByTimeAsync(10);
    expect((await pending).failureClass).toBe('timeout');
    reject(new Error('too late'));
    vi.useRealTimers();
    await new Promise(resolve => setImmediate(resolve));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('passes an abort through unchanged, before and during the call', async () => {
    const controller = new AbortController();
    const reason = new Error('stop');
    const pending = boundary('provider', 'policy', never, { signal: controller.signal, timeoutMs: 100 });
    controller.abort(reason);
    await expect(pending).rejects.toBe(reason);
    const call = vi.fn();
    await expect(boundary('provider', 'policy', call, { signal: controller.signal })).rejects.toBe(reason);
    expect(call).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('takes an error that the abort caused inside the call for the abort', async () => {
    const controller = new AbortController();
    const call = async () => {
      controller.abort('stop');
      throw new Error('socket closed');
    };
    await expect(boundary('provider', 'policy', call, { signal: controller.signal })).rejects.toBe('stop');
  });
});

function fail(message: string): never {
  throw new Error(message);
}
