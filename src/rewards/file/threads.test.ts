import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { rewardInput } from '../../../tests/support/reward-input.ts';
import type { RewardInput } from '../contracts.ts';
import { type RewardThreadOptions, rewardThreads } from './threads.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'reward-threads-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const input = (text: string, signal = new AbortController().signal): RewardInput =>
  rewardInput(text, { signal, task: { id: text, prompt: 'p', label: 'l', metadata: { column: 7 } } });

let reward: Awaited<ReturnType<typeof rewardThreads>> | undefined;
afterEach(async () => {
  await reward?.close();
  reward = undefined;
});

async function open(name: string, content: string, more: Partial<RewardThreadOptions> = {}) {
  const path = join(directory, name);
  writeFileSync(path, content);
  reward = await rewardThreads({ path, ...more });
  return reward;
}

/** Scores the length of the text; `spin` never ends, `die` ends the thread, `wait` ends when it is aborted. */
const TOLD = `
let calls = 0;
export default async batch => {
  calls += 1;
  const [{ text, task, signal }] = batch;
  if (text === 'spin') for (;;);
  if (text === 'die') process.exit(3);
  if (text === 'throw') throw new TypeError('told to');
  if (text === 'wait') await new Promise(done => signal.addEventListener('abort', done, { once: true }));
  if (text === 'say') console.log('one\\ntwo');
  return [{ reward: text.length, metrics: { calls, column: task.metadata.column } }];
};`;

describe('rewardThreads', () => {
  it('gives answers and their tasks to the function, calls overlapping', async () => {
    const score = await open('told.mjs', TOLD);
    const stop = new AbortController();
    const waiting = score([input('wait', stop.signal)]);
    const [one, two] = await Promise.all([score([input('abc')]), score([input('')])]);
    expect([one, two]).toEqual([
      [{ reward: 3, metrics: { calls: 2, column: 7 } }],
      [{ reward: 0, metrics: { calls: 3, column: 7 } }],
    ]);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    // What only waits is left alone: the thread still counts its calls.
    expect(await score([input('x')])).toMatchObject([{ metrics: { calls: 4 } }]);
  });

  it('ends a call that never ends at its deadline, and does the others in another thread', async () => {
    const score = await open('spin.mjs', TOLD, { graceMs: 50, stallMs: 600_000 });
    const stop = new AbortController();
    const hung = score([input('spin', stop.signal)]);
    const others = ['a', 'bb'].map(text => score([input(text)]));
    const failed = expect(hung).rejects.toThrow('deadline');
    stop.abort(new Error('deadline'));
    await failed;
    expect(await Promise.all(others)).toMatchObject([[{ reward: 1 }], [{ reward: 2 }]]);
  });

  it('does not let calls wait behind one that never ends', async () => {
    const score = await open('stall.mjs', TOLD, { stallMs: 50 });
    const hung = expect(score([input('spin')])).rejects.toThrow('the reward file has been closed');
    expect(await score([input('abc')])).toMatchObject([{ reward: 3 }]);
    await reward!.close();
    await hung;
  });

  it('fails what throws or dies, and goes on', async () => {
    const score = await open('die.mjs', TOLD);
    await expect(score([input('throw')])).rejects.toThrow(/^told to$/);
    await expect(score([input('die')])).rejects.toThrow('the thread of the reward file died: it ended with code 3');
    expect(await score([input('abc')])).toMatchObject([{ reward: 3 }]);
  });

  it('hands over what is printed, line by line', async () => {
    const lines: string[] = [];
    let done: () => void;
    const printed = new Promise<void>(resolve => {
      done = resolve;
    });
    const score = await open('print.mjs', TOLD, { print: line => lines.push(line) === 2 && done() });
    await score([input('say')]);
    await printed;
    expect(lines).toEqual(['one', 'two']);
  });

  it("calls OpenRLHF's reward_func", async () => {
    const score = await open(
      'openrlhf.ts',
      `export async function reward_func(queries: string[], prompts: string[], labels: string[]) {
         return { rewards: queries.map(q => q.length), scores: prompts.map(p => p.length), extra_logs: { n: labels.length } };
       }`,
    );
    expect(await score([input('ab'), input('')])).toEqual([
      { reward: 3, score: 1, metrics: { n: 2 } },
      { reward: 1, score: 1, metrics: { n: 2 } },
    ]);
    const places = await open(
      'process.mjs',
      'export const reward_func = q => ({ token_rewards: q.map(() => [0.5, 1]), step_rewards: q.map(() => [2]) });',
    );
    expect(await places([input('a')])).toEqual([{ reward: 3.5, tokens: [0.5, 1], steps: [2], metrics: {} }]);
    const wrong = await open('short.mjs', 'export const reward_func = () => [1, 2];');
    await expect(wrong([input('a')])).rejects.toThrow(
      /reward_func of .*short\.mjs was asked about 1 answers and gave 2 rewards/,
    );
    const none = await open('none.mjs', "export const reward_func = () => 'good';");
    await expect(none([input('a')])).rejects.toThrow(/none\.mjs gave something else than rewards: .*"good"/);
  });

  it.each([
    ['broken.mjs', 'export default batch =>', /^reward file .*broken\.mjs:1:\d+: /],
    ['broken.ts', 'const x = 1;\nexport default (batch: =>', /^reward file .*broken\.ts:2:\d+/],
    ['nothing.mjs', 'export const other = 1;', /exports nothing as reward_func or default .*other \(line 1\)/],
    ['exits.mjs', 'process.exit(4);', /exits\.mjs ended its thread with code 4/],
  ])('refuses %s before anything is scored', async (name, content, message) => {
    await expect(open(name, content)).rejects.toThrow(message);
  });
});
