import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ESTIMATOR_NAMES } from '../src/algorithms/advantages/index.ts';
import { POLICY_LOSSES } from '../src/algorithms/losses/index.ts';
import { mean } from '../src/rollout/metrics.ts';
import { formatTable, type Table } from './harness.ts';
import { panelsSvg } from './learning-chart.ts';
import { ends, IMPROVED, learn, TASKS, type TaskName } from './learning-tasks.ts';

const SEEDS = [1, 2, 3];
const STEPS = 25;

/** Mean rewards by step, for each seed. */
type Runs = readonly (readonly number[])[];

/** Every combination of estimator and loss on every task; writes docs/learning.md and its curves. */
export async function run(): Promise<void> {
  const docs = fileURLToPath(new URL('../docs/', import.meta.url));
  mkdirSync(`${docs}learning`, { recursive: true });
  const sections: string[] = [];
  for (const task of Object.keys(TASKS) as TaskName[]) {
    const runs = await learnAll(task);
    const table = tableOf(task, runs);
    console.log(formatTable(table));
    const title = `${task}: every estimator (rows) with every loss (columns)`;
    const svg = panelsSvg({ title, rows: ESTIMATOR_NAMES, columns: POLICY_LOSSES, runs: (i, j) => runs[i]![j]! });
    writeFileSync(`${docs}learning/${task}.svg`, svg);
    sections.push(section(task, table));
  }
  writeFileSync(`${docs}learning.md`, [INTRODUCTION, ...sections].join('\n'));
  console.log(`written to ${docs}learning.md`);
}

async function learnAll(task: TaskName): Promise<Runs[][]> {
  const all: Runs[][] = [];
  for (const estimator of ESTIMATOR_NAMES) {
    const row: Runs[] = [];
    for (const loss of POLICY_LOSSES) {
      const runs: number[][] = [];
      for (const seed of SEEDS) runs.push(await learn({ task, estimator, loss, seed }, STEPS));
      row.push(runs);
    }
    console.log(`${task}: ${estimator}`);
    all.push(row);
  }
  return all;
}

function tableOf(task: TaskName, all: readonly Runs[][]): Table {
  const cell = (runs: Runs) => {
    const improved = runs.map(ends).filter(({ from, to }) => to >= from + IMPROVED).length;
    const [from, to] = [mean(runs.map(run => ends(run).from)), mean(runs.map(run => ends(run).to))];
    return `${from.toFixed(2)} → ${to.toFixed(2)} (${improved}/${runs.length})`;
  };
  return {
    title: `${task}: first → last fifth of ${STEPS} steps, mean of the seeds (seeds improved)`,
    columns: ['estimator', ...POLICY_LOSSES],
    rows: all.map((row, i) => [ESTIMATOR_NAMES[i]!, ...row.map(cell)]),
  };
}

const INTRODUCTION = `# Does it learn

Every estimator with every policy loss, on two tasks small enough to run them all: \`npm run bench -- learning\` writes this
page and its curves (some four minutes on one core), and a shortened form of it is a test. The policy is a table of
bigrams that says one of three letters or ends its answer, each with probability 1/4 at first; pipeline, groups,
estimators, losses, critic and updates are those of any run. A step has 4 tasks with 8 samples each and makes two updates,
the second of which is off-policy. Plain gradient descent with learning rate 6 (recall) and 3 (corridor), three times that
with the constant aggregation of dr_grpo. The numbers say that the combinations work, not which one is better: rates are
not tuned for each.

A cell is the mean reward over the first and over the last fifth of ${STEPS} steps, and how many of ${SEEDS.length} seeds gained at least ${IMPROVED}.
`;

const ABOUT: Readonly<Record<TaskName, string>> = {
  recall:
    'One answer: the letter that belongs to a digit, and nothing after it. Reward 1 if it is right, 1/16 by chance.',
  corridor:
    'Up to six turns: three doors in a row, each opened by the letter that belongs to its digit. Reward 1, once, at the last one.',
};

function section(task: TaskName, { columns, rows }: Table): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
  const table = [line(columns), line(columns.map(() => '---')), ...rows.map(line)];
  return `## ${task}\n\n${ABOUT[task]}\n\n${table.join('\n')}\n\n![Curves of ${task}](learning/${task}.svg)\n`;
}
