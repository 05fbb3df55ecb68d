import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gate } from '../../tests/support/gate.ts';
import { HttpFailure } from './client.ts';
import { NoServerError, Servers, type ServersOptions } from './servers.ts';

/** Servers on a clock that only waiting moves. */
function setup(options: Partial<ServersOptions> = {}) {
  const clock = { now: 0, waits: [] as number[] };
  const servers = new Servers({
    urls: ['a', 'b'],
    now: () => clock.now,
    random: () => 1,
    wait: async ms => {
      clock.waits.push(ms);
      clock.now += ms;
    },
    ...options,
  });
  return { servers, clock };
}

const down = (url: string, retryAfterMs?: number) =>
  new HttpFailure(`${url} is down`, { retryable: true, retryAfterMs });

describe('Servers', () => {
  it('shares calls evenly, to the one with the fewest under way', async () => {
    const { servers } = setup({ urls: ['a', 'b', 'c'] });
    const asked: string[] = [];
    const { opened, open } = gate();
    const calls = Array.from({ length: 9 }, () =>
      servers.call(async url => {
        asked.push(url);
        await opened;
      }),
    );
    for (const url of ['a', 'b', 'c']) expect(asked.filter(one => one === url)).toHaveLength(3);
    open();
    await Promise.all(calls);
  });

  it('asks another at once when one fails, and waits before it asks the same again', async () => {
    const { servers, clock } = setup();
    const asked: string[] = [];
    const answer = await servers.call(async url => {
      asked.push(url);
      if (asked.length < 4) throw down(url);
      return url;
    });
    expect([answer, asked]).toEqual(['b', ['a', 'b', 'a', 'b']]);
    // After both have failed, 2nd and 3rd attempt: twice the backoff each time.
    expect(clock.waits).toEqual([1000, 2000]);
  });

  it('waits as long as a server asks for', async () => {
    const { servers, clock } = setup({ urls: ['a'] });
    let count = 0;
    await servers.call(async url => {
      if (count++ === 0) throw down(url, 7000);
    });
    expect(clock.waits).toEqual([7000]);
  });

  it('leaves one alone that failed again and again, and tries it with one call after a while', async () => {
    const { servers, clock } = setup({ failuresToOpen: 2, openMs: 5000, attempts: 2 });
    const asked: string[] = [];
    const broken = { a: true };
    const call = () =>
      servers.call(async url => {
        asked.push(url);
        if (url === 'a' && broken.a) throw down(url);
        return url;
      });
    for (let i = 0; i < 6; i++) expect(await call()).toBe('b');
    expect(asked.filter(url => url === 'a')).toHaveLength(2);
    broken.a = false;
    clock.now += 5000;
    asked.length = 0;
    await Promise.all([call(), call(), call(), call()]);
    expect(asked.filter(url => url === 'a')).toHaveLength(1);
    await Promise.all([call(), call(), call(), call()]);
    expect(asked.filter(url => url === 'a').length).toBeGreaterThan(1);
  });

  it('waits for the first to come back when all are out of use', async () => {
    const { servers, clock } = setup({ urls: ['a'], failuresToOpen: 1, openMs: 4000, attempts: 1 });
    await expect(servers.call(async url => Promise.reject(down(url)))).rejects.toThrow(NoServerError);
    expect(await servers.call(async url => url)).toBe('a');
    expect(clock.waits).toEqual([4000]);
  });

  it('gives up after so many attempts, with what they came to, and at once on what a repetition cannot mend', async () => {
    const { servers } = setup({ attempts: 3 });
    await expect(servers.call(async url => Promise.reject(down(url)))).rejects.toThrow(
      'no answer in 3 attempts: a is down; b is down',
    );
    let count = 0;
    const refused = new HttpFailure('bad request', { retryable: false });
    await expect(
      servers.call(async () => {
        count += 1;
        throw refused;
      }),
    ).rejects.toBe(refused);
    expect(count).toBe(1);
  });

  it('neither waits for nor leaves alone a server that answered what is of no use', async () => {
    const { servers, clock } = setup({ urls: ['a'], failuresToOpen: 1, attempts: 4 });
    const useless = new HttpFailure('a: says nothing', { retryable: true, answered: true });
    await expect(servers.call(async () => Promise.reject(useless))).rejects.toThrow(
      'no answer in 4 attempts: a: says nothing',
    );
    expect(await servers.call(async url => url)).toBe('a');
    expect(clock.waits).toEqual([]);
  });

  it('never waits longer than it may, and at least half', async () => {
    await fc.assert(
      fc.asyncProperty(fc.double({ min: 0, max: 0.999, noNaN: true }), async random => {
        const { servers, clock } = setup({ urls: ['a'], attempts: 12, failuresToOpen: 99, random: () => random });
        await expect(servers.call(async url => Promise.reject(down(url)))).rejects.toThrow(NoServerError);
        expect(Math.max(...clock.waits)).toBeLessThanOrEqual(10_000);
        expect(clock.waits[0]).toBeGreaterThanOrEqual(250);
      }),
    );
  });

  it('stops when it is told to', async () => {
    const stop = new AbortController();
    const { servers } = setup({ urls: ['a'] });
    const call = servers.call(async url => {
      stop.abort(new Error('enough'));
      throw down(url);
    }, stop.signal);
    await expect(call).rejects.toThrow('enough');
  });

  it.each([
    [{ urls: [] }, /at least one server/],
    [{ attempts: 0 }, /attempts must be a whole number ≥ 1, got 0/],
  ])('refuses %j', (options, message) => {
    expect(() => setup(options)).toThrow(message);
  });
});
