import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ResourceSpec } from '../tools/contracts.ts';
import { resourcePool } from './pool.ts';

const never = new AbortController().signal;

/** Resources that say what happened to them. */
function counted(extra: Partial<ResourceSpec<{ id: number; dirty: boolean }>> = {}) {
  const log: string[] = [];
  let next = 0;
  const spec: ResourceSpec<{ id: number; dirty: boolean }> = {
    name: 'box',
    create() {
      log.push(`create ${next}`);
      return { id: next++, dirty: false };
    },
    reset(box) {
      box.dirty = false;
      log.push(`reset ${box.id}`);
    },
    destroy(box) {
      log.push(`destroy ${box.id}`);
    },
    ...extra,
  };
  return { spec, log };
}

describe('resourcePool', () => {
  it('gives one holder one resource, also while it is being made', async () => {
    const { spec, log } = counted();
    const pool = resourcePool(spec);
    expect(pool.held('a')).toBeUndefined();
    const [first, second] = await Promise.all([pool.acquire('a', never), pool.acquire('a', never)]);
    expect(first).toBe(second);
    expect(pool.held('a')).toBe(first);
    expect((await pool.acquire('b', never)).id).toBe(1);
    await pool.release('a');
    await pool.release('a');
    expect(pool.held('a')).toBeUndefined();
    await pool.close();
    expect(log).toEqual(['create 0', 'create 1', 'destroy 0', 'destroy 1']);
    expect(pool.alive).toBe(0);
  });

  it('hands a shared one on, reset', async () => {
    const { spec, log } = counted();
    const pool = resourcePool(spec, { scope: 'shared' });
    (await pool.acquire('a', never)).dirty = true;
    await pool.release('a');
    expect(await pool.acquire('b', never)).toEqual({ id: 0, dirty: false });
    expect(log).toEqual(['create 0', 'reset 0']);
  });

  it('lets more holders than max wait, in their order, and lets a place go on when one gives up', async () => {
    const { spec } = counted();
    const pool = resourcePool(spec, { max: 1, scope: 'shared' });
    const order: string[] = [];
    const ask = (holder: string, signal = never) => pool.acquire(holder, signal).then(() => order.push(holder));
    await ask('a');
    const leaving = new AbortController();
    const b = ask('b', leaving.signal);
    const c = ask('c');
    leaving.abort(new Error('b has ended'));
    await expect(b).rejects.toThrow('b has ended');
    expect(order).toEqual(['a']);
    await pool.release('a');
    await c;
    expect(order).toEqual(['a', 'c']);
  });

  it('warms up no more than max, and passes on what cannot be made', async () => {
    const { spec, log } = counted();
    const pool = resourcePool(spec, { max: 2 });
    await pool.warm(5);
    expect(log).toEqual(['create 0', 'create 1']);
    const failing = resourcePool({ name: 'box', create: () => Promise.reject(new Error('no disk')) }, { max: 1 });
    await expect(failing.warm(1)).rejects.toThrow('no disk');
    await expect(failing.acquire('a', never)).rejects.toThrow('no disk');
    expect(failing.alive).toBe(0);
  });

  it('replaces what is not healthy or cannot be reset', async () => {
    const { spec, log } = counted({ healthy: box => box.id !== 0 });
    const pool = resourcePool(spec, { max: 1 });
    await pool.warm(1);
    expect((await pool.acquire('a', never)).id).toBe(1);
    expect(log).toEqual(['create 0', 'destroy 0', 'create 1']);

    const stuck = counted({ reset: () => Promise.reject(new Error('it hangs')) });
    const shared = resourcePool(stuck.spec, { max: 1, scope: 'shared' });
    await shared.acquire('a', never);
    await expect(shared.release('a')).rejects.toThrow(/pool box: a resource could not be reset .* it hangs/);
    expect((await shared.acquire('b', never)).id).toBe(1);
  });

  it('refuses those who wait when it closes, and whoever comes later', async () => {
    const { spec, log } = counted();
    const pool = resourcePool(spec, { max: 1 });
    await pool.acquire('a', never);
    const waiting = pool.acquire('b', never);
    const refused = expect(waiting).rejects.toThrow('pool box is closed');
    await pool.close();
    await refused;
    await expect(pool.acquire('c', never)).rejects.toThrow('pool box is closed');
    expect(log).toEqual(['create 0', 'destroy 0']);
  });

  it('destroys what is ready only after its holder has gone', async () => {
    let ready: (box: string) => void = () => undefined;
    const destroyed: string[] = [];
    const create = () =>
      new Promise<string>(resolve => {
        ready = resolve;
      });
    const pool = resourcePool({ name: 'box', create, destroy: box => void destroyed.push(box) });
    const asked = pool.acquire('a', never);
    const released = pool.release('a');
    ready('late');
    await Promise.all([asked, released]);
    expect(destroyed).toEqual(['late']);
    expect(pool.alive).toBe(0);
  });

  it.each([0, -1, Number.NaN])('refuses max = %d', max => {
    expect(() => resourcePool(counted().spec, { max })).toThrow(/max is .*; expected 1 or more/);
  });

  it('refuses to share what it cannot reset', () => {
    expect(() => resourcePool({ name: 'box', create: () => 1 }, { scope: 'shared' })).toThrow(/needs reset/);
  });

  it('never has more than max alive, serves everyone and ends with nothing, whatever the order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        fc.scheduler(),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
        async (max, shared, scheduler, gives) => {
          let [alive, most] = [0, 0];
          const spec: ResourceSpec<object> = {
            name: 'box',
            create: async () => {
              alive += 1;
              most = Math.max(most, alive);
              await scheduler.schedule(Promise.resolve());
              return {};
            },
            reset: () => scheduler.schedule(Promise.resolve()),
            destroy: () => {
              alive -= 1;
            },
          };
          const pool = resourcePool(spec, { max, scope: shared ? 'shared' : 'episode' });
          const holders = gives.map(async (patient, i) => {
            const leaving = new AbortController();
            const asked = pool.acquire(`${i}`, leaving.signal);
            if (!patient) leaving.abort(new Error('gone'));
            const got = await asked.then(
              () => true,
              () => false,
            );
            if (got) await scheduler.schedule(Promise.resolve());
            await pool.release(`${i}`);
            return got || !patient;
          });
          await scheduler.waitFor(Promise.all(holders));
          expect(await Promise.all(holders)).not.toContain(false);
          expect(most).toBeLessThanOrEqual(max);
          await pool.close();
          expect([alive, pool.alive]).toEqual([0, 0]);
        },
      ),
      { numRuns: 200 },
    );
  });
});
