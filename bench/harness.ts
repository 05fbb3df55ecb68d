import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Timing on a machine that others use too: the cases of one comparison take turns, and of each the shortest run
 * counts, so that what disturbs one case disturbs the others, and the ratio between two cases can be trusted more
 * than either time.
 */

/**
 * BENCH_THREADS, or all cores. On a busy machine one thread is the fairer comparison: threads that wait for one
 * another suffer most from what else runs.
 */
export const THREADS = Number(process.env.BENCH_THREADS ?? availableParallelism());

export interface Case {
  readonly name: string;
  /** One repetition. A returned number is its seconds, where only a part of the repetition is meant. */
  run(): undefined | number | Promise<undefined | number>;
}

export interface TimingOptions {
  /** Repetitions of every case at least, after one that does not count. Default 3. */
  readonly rounds?: number;
  /** Repeats until this much time has passed. Default 3. */
  readonly seconds?: number;
}

/** Name → seconds of the shortest repetition. */
export async function interleave(cases: readonly Case[], options: TimingOptions = {}): Promise<Map<string, number>> {
  const { rounds = 3, seconds = 3 } = options;
  const shortest = new Map<string, number>();
  for (const each of cases) await each.run();
  const end = performance.now() + 1000 * seconds;
  for (let round = 0; round < rounds || performance.now() < end; round++) {
    for (const { name, run } of cases) {
      const start = performance.now();
      const own = await run();
      const took = own ?? (performance.now() - start) / 1000;
      shortest.set(name, Math.min(took, shortest.get(name) ?? Number.POSITIVE_INFINITY));
    }
  }
  return shortest;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGB: number;
  readonly platform: string;
  readonly node: string;
  /** Over the last minute, when the measurement began: above the number of cores, times are too long. */
  readonly load: number;
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform}-${process.arch}`,
    node: process.version,
    load: Math.round(loadavg()[0]! * 10) / 10,
  };
}

export type Cell = string | number;
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

const show = (cell: Cell) =>
  typeof cell === 'string' ? cell : Math.abs(cell) >= 1000 ? cell.toFixed(0) : String(Number(cell.toPrecision(3)));

/** As a Markdown table, padded so that it reads well in a terminal too. */
export function formatTable({ title, columns, rows }: Table): string {
  const cells = [columns, ...rows.map(row => row.map(show))];
  const widths = columns.map((_, i) => Math.max(...cells.map(row => row[i]!.length)));
  const lines = cells.map(row => `| ${row.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`);
  lines.splice(1, 0, `| ${widths.map(width => '-'.repeat(width)).join(' | ')} |`);
  return `${title}\n\n${lines.join('\n')}\n`;
}

/** Prints tables as they come and keeps them for `save`. */
export class Report {
  readonly #name: string;
  readonly #machine = describeMachine();
  readonly #tables: Table[] = [];

  constructor(name: string) {
    this.#name = name;
    const { cpu, cores, memoryGB, platform, node, load } = this.#machine;
    console.log(`${cpu}, ${cores} cores, ${memoryGB} GB, ${platform}, node ${node}, load ${load}\n`);
  }

  add(table: Table): void {
    this.#tables.push(table);
    console.log(formatTable(table));
  }

  /** Writes bench/results/<name>.json. */
  save(): void {
    const directory = fileURLToPath(new URL('results/', import.meta.url));
    mkdirSync(directory, { recursive: true });
    const file = join(directory, `${this.#name}.json`);
    const result = { name: this.#name, date: new Date().toISOString(), commit: commit(), machine: this.#machine };
    writeFileSync(file, `${JSON.stringify({ ...result, tables: this.#tables }, null, 1)}\n`);
    console.log(`written to ${file}`);
  }
}

/** The commit of the sources, with a + where tracked files differ from it. */
function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--untracked-files=no') ? '+' : '');
}
