import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Cell, formatTable, type Machine, type Table } from './harness.ts';

/** The goals beside what the last runs of the benches reached (bench/results), into docs/speed.md. */

interface Goal {
  readonly what: string;
  /** At least so much. */
  readonly least: number;
  readonly bench: string;
  /** Beginning of the table's title, first cells of the row, name of the column. */
  readonly cell: readonly [table: string, row: readonly Cell[], column: string];
}

const beside = (model: string, peer: string) => `${model} beside ${peer}`;
const least = (value: number, ...models: readonly string[]) => models.map(model => ({ model, value }));

const GOALS: readonly Goal[] = [
  ...least(1.5, '0.75M', '25M', '135M').map(({ model, value }) => ({
    what: `${model}: training, × PyTorch eager`,
    least: value,
    bench: 'peers',
    cell: [beside(model, 'PyTorch'), ['training'], '×'] as const,
  })),
  ...[
    ...[5, 3, 2].map((value, i) => ({ model: '0.75M', value, batch: [1, 16, 64][i]! })),
    ...least(2.2, '25M', '135M').flatMap(goal => [1, 16, 64].map(batch => ({ ...goal, batch }))),
  ].map(({ model, value, batch }) => ({
    what: `${model}: generate, batch ${batch}, × Transformers`,
    least: value,
    bench: 'peers',
    cell: [beside(model, 'PyTorch'), [`generate 16 after 16, batch ${batch}`], '×'] as const,
  })),
  ...['f32 / f32', 'int8 / q8_0'].flatMap(precision =>
    least(1, '0.75M', '25M', '135M').flatMap(({ model, value }) =>
      [1, 16].map(batch => ({
        what: `${model}: decode ${precision}, batch ${batch}, × llama.cpp`,
        least: value,
        bench: 'peers',
        cell: [beside(model, 'llama.cpp'), [precision, batch], '× llama_decode'] as const,
      })),
    ),
  ),
  {
    what: '135M: decode at batch 1, of the memory limit',
    least: 0.7,
    bench: 'engine',
    cell: ['135M: decoding', [1], 'weights read, of memory limit'],
  },
  ...[3, 3, 2.5].map((value, i) => ({
    what: `135M: decode in int8, batch ${[1, 16, 64][i]}, × float32`,
    least: value,
    bench: 'int8',
    cell: ['135M: decoded', [[1, 16, 64][i]!], '×'] as const,
  })),
  ...least(3, '0.75M', '25M').map(({ model, value }) => ({
    what: `${model}: a GRPO step, × TRL`,
    least: value,
    bench: 'step',
    cell: ['A GRPO step', [model], '×'] as const,
  })),
  ...least(3, '0.75M', '25M', '135M').map(({ model, value }) => ({
    what: `${model}: training with shared prompts, 8 samples, prompt 7 × answer, × unshared`,
    least: value,
    bench: 'tree',
    cell: [`${model}:`, ['1 × 8 × (448 + 64)'], 'speed-up'] as const,
  })),
];

interface Result {
  readonly date: string;
  readonly commit: string;
  readonly machine: Machine;
  readonly tables: readonly Table[];
}

export async function run(): Promise<void> {
  const results = new Map<string, Result | undefined>();
  const resultOf = (bench: string) => {
    if (!results.has(bench)) results.set(bench, read(bench));
    return results.get(bench);
  };
  const rows = GOALS.map(({ what, least, bench, cell }) => {
    const measured = find(resultOf(bench), cell);
    if (measured === undefined) return [what, `≥ ${least}`, 'not measured', ''];
    return [what, `≥ ${least}`, measured, measured >= least ? 'yes' : 'no'];
  });
  const origins = [...results].map(([bench, result]) => {
    if (result === undefined) return `\`${bench}\` was not run`;
    const { date, commit, machine } = result;
    const where = `${machine.cpu}, ${machine.cores} cores, node ${machine.node.slice(1)}, load ${machine.load}`;
    return `\`${bench}\` on ${date.slice(0, 10)} at ${commit} (${where})`;
  });
  const table = formatTable({
    title: `${origins.join(';\n')}.`,
    columns: ['what', 'goal', 'measured', 'reached'],
    rows,
  });
  console.log(table);
  const page = fileURLToPath(new URL('../docs/speed.md', import.meta.url));
  const text = readFileSync(page, 'utf8');
  writeFileSync(
    page,
    text.replace(PLACE, (_, before: string, after: string) => `${before}\n\n${table}\n${after}`),
  );
}

const PLACE = /(<!-- goals: written by the bench of that name -->).*?(<!-- end of goals -->)/s;

function read(bench: string): Result | undefined {
  const file = fileURLToPath(new URL(`results/${bench}.json`, import.meta.url));
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Result) : undefined;
}

function find(result: Result | undefined, [title, start, column]: Goal['cell']): number | undefined {
  const table = result?.tables.find(each => each.title.startsWith(title));
  const isAt = (cell: Cell, found: Cell | undefined) =>
    typeof cell === 'string' ? typeof found === 'string' && found.startsWith(cell) : found === cell;
  const row = table?.rows.find(cells => start.every((cell, i) => isAt(cell, cells[i])));
  const value = row?.[table!.columns.indexOf(column)];
  return typeof value === 'number' ? value : undefined;
}
