import { availableParallelism } from 'node:os';
import type { Language, Sandbox } from '../src/sandbox/contracts.ts';
import { judge } from '../src/sandbox/judge.ts';
import { openSandbox } from '../src/sandbox/sandbox.ts';
import { type Cell, Report } from './harness.ts';

const PROGRAMS: Readonly<Record<Language, { readonly print: string; readonly define: string }>> = {
  python: { print: 'print(sum(map(int, input().split())))', define: 'def f(a, b):\n    return a + b' },
  javascript: {
    print: 'console.log(require("fs").readFileSync(0, "utf8").split(" ").reduce((a, b) => a + Number(b), 0))',
    define: 'function f(a, b) { return a + b; }',
  },
};
const SECONDS = 4;

/**
 * Executions/s and the time of one, in the sandbox: programs that start an interpreter each, or find one started ahead;
 * one after another and as many at once as the sandbox lends by default; four calls of a function; cells of a session.
 */
export async function run(): Promise<void> {
  const report = new Report('code');
  const rows: Cell[][] = [];
  for (const language of ['python', 'javascript'] as const) {
    const { print, define } = PROGRAMS[language];
    const program = async (sandbox: Sandbox) => {
      const { stdout } = await sandbox.run({ language, source: print, stdin: '1 2' });
      if (stdout !== '3\n') throw new Error(`${language} answered ${JSON.stringify(stdout)}`);
    };
    const tests = [1, 2, 3, 4].map(a => ({ call: 'f', args: [a, 2], returns: a + 2 }));
    const calls = async (sandbox: Sandbox) => {
      const verdicts = await judge(sandbox, { language, source: define }, tests);
      if (!verdicts.every(({ passed }) => passed)) throw new Error(`${language}: ${JSON.stringify(verdicts)}`);
    };
    const all = 2 * availableParallelism();
    const cases = [
      { name: 'program, started for it', atOnce: 1, warm: 0, work: program },
      { name: 'program, started ahead', atOnce: 1, warm: 2, work: program },
      { name: 'program, started ahead', atOnce: all, warm: all, work: program },
      { name: 'four calls of a function', atOnce: all, warm: all, work: calls },
    ];
    for (const { name, atOnce, warm, work } of cases) {
      const sandbox = openSandbox({ warm, concurrency: atOnce });
      await sandbox.warm(language, warm);
      rows.push([language, name, atOnce, ...(await measure(() => work(sandbox), atOnce))]);
      await sandbox.close();
    }
    const sandbox = openSandbox({ warm: 0 });
    const session = await sandbox.start(language);
    await session.exec('x = 1');
    rows.push([language, 'cell of a session', 1, ...(await measure(() => session.exec('x = x + 1'), 1))]);
    await sandbox.close();
  }
  report.add({
    title: `Programs in the sandbox, ${SECONDS} s each`,
    columns: ['language', 'what', 'at once', 'per second', 'p50 in ms', 'p99 in ms'],
    rows,
  });
  report.save();
}

/** Repeats `work` on so many tracks: how often a second, and the median and the 99th percentile of its time in ms. */
async function measure(work: () => Promise<unknown>, tracks: number): Promise<[number, number, number]> {
  for (let i = 0; i < 3; i++) await work();
  const times: number[] = [];
  const began = performance.now();
  const track = async () => {
    while (performance.now() - began < 1000 * SECONDS) {
      const start = performance.now();
      await work();
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: tracks }, track));
  const seconds = (performance.now() - began) / 1000;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(share * (times.length - 1))]!;
  return [times.length / seconds, at(0.5), at(0.99)];
}
