import { describe, expect, it } from 'vitest';
import { AskedOnce } from './once.ts';
import { Slots } from './slots.ts';

const { signal } = new AbortController();

describe('AskedOnce', () => {
  it('forgets what was used least recently', async () => {
    const asked: string[] = [];
    const once = new AskedOnce<string>(2);
    const get = (question: string) =>
      once.get(
        question,
        async () => {
          asked.push(question);
          return question.toUpperCase();
        },
        signal,
      );
    for (const question of ['a', 'b', 'a', 'c', 'a', 'b']) {
      expect((await get(question)).value).toBe(question.toUpperCase());
    }
    expect(asked).toEqual(['a', 'b', 'c', 'b']);
  });

  it('asks every time at size 0', async () => {
    const once = new AskedOnce<number>(0);
    let count = 0;
    const get = () => once.get('a', async () => ++count, signal);
    expect(await Promise.all([get(), get()])).toEqual([
      { value: 1, cached: false },
      { value: 2, cached: false },
    ]);
  });

  it('goes on while somebody waits, and stops when nobody does', async () => {
    const once = new AskedOnce<number>(4);
    const [first, second] = [new AbortController(), new AbortController()];
    const stops: AbortSignal[] = [];
    const ask = (stop: AbortSignal) => {
      stops.push(stop);
      return new Promise<number>((_, reject) => stop.addEventListener('abort', () => reject(stop.reason)));
    };
    const waiting = [once.get('a', ask, first.signal), once.get('a', ask, second.signal)];
    first.abort(new Error('the first has left'));
    await expect(waiting[0]).rejects.toThrow('the first has left');
    expect(stops.map(({ aborted }) => aborted)).toEqual([false]);
    second.abort(new Error('the second has left'));
    await expect(waiting[1]).rejects.toThrow('the second has left');
    expect(stops.map(({ aborted }) => aborted)).toEqual([true]);
    expect(await once.get('a', async () => 5, signal)).toEqual({ value: 5, cached: false });
  });

  it('keeps no failure', async () => {
    const once = new AskedOnce<number>(4);
    await expect(once.get('a', () => Promise.reject(new Error('down')), signal)).rejects.toThrow('down');
    expect(await once.get('a', async () => 1, signal)).toEqual({ value: 1, cached: false });
  });
});

it('Slots lets so many work at a time, and skips those that have left the line', async () => {
  const slots = new Slots(1);
  const leaver = new AbortController();
  const worked: string[] = [];
  let release: () => void = () => undefined;
  const first = slots.run(() => new Promise<void>(resolve => (release = resolve)), signal);
  const left = slots.run(async () => worked.push('left'), leaver.signal);
  const last = slots.run(async () => worked.push('last'), signal);
  leaver.abort(new Error('gone'));
  expect(worked).toEqual([]);
  release();
  await expect(left).rejects.toThrow('gone');
  await Promise.all([first, last]);
  expect(worked).toEqual(['last']);
});
