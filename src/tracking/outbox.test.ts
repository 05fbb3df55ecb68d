import { describe, expect, it } from 'vitest';
import { RefusedError } from './http.ts';
import { Outbox } from './outbox.ts';

interface Item {
  readonly step: number;
}
const item = (step: number): Item => ({ step });
const turn = () => new Promise(resolve => setImmediate(resolve));

/** A network that is told what to do with each delivery, and whose pauses end when the test says so. */
function network(capacity?: number) {
  const arrived: number[][] = [];
  const waits: { readonly ms: number; readonly over: () => void }[] = [];
  const state: { fault: Error | undefined; hang: boolean } = { fault: undefined, hang: false };
  const outbox = new Outbox<Item>({
    send: async (items, signal) => {
      if (state.hang) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      if (state.fault) throw state.fault;
      arrived.push(items.map(({ step }) => step));
    },
    batch: 3,
    capacity,
    closeMs: 5,
    wait: (ms, signal) =>
      new Promise((resolve, reject) => {
        waits.push({ ms, over: () => resolve(undefined) });
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  });
  return { arrived, waits, state, outbox };
}

describe('Outbox', () => {
  it('delivers in order, in batches, in the background', async () => {
    const { arrived, outbox } = network();
    for (let step = 1; step <= 5; step++) outbox.push(item(step));
    expect(arrived).toEqual([]);
    await outbox.close();
    expect(arrived.flat()).toEqual([1, 2, 3, 4, 5]);
    expect(Math.max(...arrived.map(({ length }) => length))).toBeLessThanOrEqual(3);
  });

  it('tries again, with longer and longer pauses, says so once, and loses nothing when the network is back', async () => {
    const { arrived, waits, state, outbox } = network();
    state.fault = new Error('no route');
    outbox.push(item(1));
    for (let attempt = 0; attempt < 8; attempt++) {
      await turn();
      waits.at(-1)?.over();
    }
    await turn();
    expect(waits.map(({ ms }) => ms / 1000).slice(0, 8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    expect(() => outbox.push(item(2))).toThrow(/no route \(5 attempts; they go on/);
    outbox.push(item(3));
    state.fault = undefined;
    await outbox.close();
    expect(arrived.flat()).toEqual([1, 2, 3]);
  });

  it('gives up when it is refused: said once, and what was lost at the end', async () => {
    const { arrived, state, outbox } = network();
    outbox.push(item(1));
    await turn();
    state.fault = new RefusedError('401 who are you');
    outbox.push(item(2));
    await turn();
    const error = (call: () => void) => {
      try {
        call();
      } catch (thrown) {
        return thrown;
      }
    };
    expect(error(() => outbox.push(item(3)))).toMatchObject({
      message: '401 who are you',
      lost: 'nothing from step 2 on arrives there',
    });
    expect(error(() => outbox.push(item(4)))).toBeUndefined();
    state.fault = undefined;
    await expect(outbox.close()).rejects.toMatchObject({ lost: '3 records of steps 2 to 4 are lost there' });
    expect(arrived).toEqual([[1]]);
  });

  it('keeps no more than its capacity', async () => {
    const { arrived, state, outbox } = network(2);
    state.fault = new Error('down');
    outbox.push(item(1));
    outbox.push(item(2));
    await turn();
    expect(() => outbox.push(item(3))).toThrow(/2 records wait for delivery, which is all that may \(down\)/);
    state.fault = undefined;
    await expect(outbox.close()).rejects.toMatchObject({ lost: '1 records of steps 3 to 3 are lost there' });
    expect(arrived.flat()).toEqual([1, 2]);
  });

  it('ends at the deadline of close, also when the network hangs', async () => {
    const { state, outbox } = network();
    state.hang = true;
    outbox.push(item(7));
    await expect(outbox.close()).rejects.toMatchObject({
      message: 'not delivered within 0.005 s',
      lost: '1 records of steps 7 to 7 are lost there',
    });
  });
});
