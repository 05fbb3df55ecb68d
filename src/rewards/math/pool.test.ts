import { afterEach, describe, expect, it } from 'vitest';
import { TIMED_OUT, WorkerPool } from './pool.ts';

/** A thread that answers, hangs, throws, dies or takes all memory, as it is told. */
const ENTRY = new URL('../../../tests/support/told-worker.ts', import.meta.url);

let pool: WorkerPool<string, string>;
const start = (options: { workers?: number; deadlineMs?: number } = {}) => {
  pool = new WorkerPool({ entry: ENTRY, workers: 1, deadlineMs: 60_000, ...options });
  return pool;
};
afterEach(() => pool.close());

describe('WorkerPool', () => {
  it('gives each job its result', async () => {
    const { workers, jobs } = { workers: 2, jobs: Array.from({ length: 200 }, (_, i) => `say ${i}`) };
    start({ workers });
    expect(await Promise.all(jobs.map(job => pool.run(job)))).toEqual(jobs.map(job => job.slice(4)));
  });

  it('kills the thread of a job that passes its deadline, and does the others', async () => {
    start({ deadlineMs: 500 });
    const results = Promise.all(['say 1', 'spin', 'say 2', 'spin', 'say 3'].map(job => pool.run(job)));
    expect(await results).toEqual(['1', TIMED_OUT, '2', TIMED_OUT, '3']);
  });

  it('fails a job that throws, and goes on in the same thread', async () => {
    start();
    const results = await Promise.allSettled(['say 1', 'throw', 'say 2'].map(job => pool.run(job)));
    expect(results).toMatchObject([{ value: '1' }, { reason: { message: 'told to' } }, { value: '2' }]);
  });

  it('fails the job at which its thread dies, and only that one', async () => {
    start();
    const results = await Promise.allSettled(['say 1', 'exit', 'memory', 'say 2'].map(job => pool.run(job)));
    expect(results).toMatchObject([
      { value: '1' },
      { reason: { message: 'a worker died: the worker ended with code 3' } },
      { reason: { message: expect.stringMatching(/^a worker died: .*memory/) } },
      { value: '2' },
    ]);
  });

  it('fails every job of threads that cannot start', async () => {
    pool = new WorkerPool({ entry: new URL('./absent.ts', ENTRY), workers: 1, deadlineMs: 60_000 });
    const results = await Promise.allSettled([pool.run('say 1'), pool.run('say 2')]);
    for (const result of results) {
      expect(result).toMatchObject({ reason: { message: expect.stringMatching(/^a worker died: .*absent/) } });
    }
  });

  it('refuses and rejects when it is closed', async () => {
    start();
    const running = expect(pool.run('spin')).rejects.toThrow('was closed');
    await pool.close();
    await running;
    await expect(pool.run('say 1')).rejects.toThrow('is closed');
  });
});
