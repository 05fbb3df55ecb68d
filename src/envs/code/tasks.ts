import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { z } from 'zod';
import { explain } from '../../episode/explain.ts';
import type { Task } from '../../episode/task.ts';
import { type TestCase, testCase } from '../../sandbox/judge.ts';
import type { Player } from '../contracts.ts';

const columns = z.object({
  tests: z.array(testCase).min(1),
  /** A program around the answer, whose place is `{}`. */
  template: z.string().includes('{}').optional(),
});

export interface CodeTask {
  readonly tests: readonly TestCase[];
  /** The whole program of what was answered. */
  readonly program: (answer: string) => string;
}

/** What a row of a dataset says about a program. @throws Error that names the task, the column and what is wrong */
export function readCodeTask(task: Task): CodeTask {
  const parsed = columns.safeParse(task.metadata);
  if (!parsed.success) throw new Error(`task ${task.id}: ${explain(parsed.error, task.metadata)}`);
  const { tests, template } = parsed.data;
  return { tests, program: answer => (template === undefined ? answer : template.replace('{}', () => answer)) };
}

const returns = (call: string, ...pairs: (readonly [unknown[], unknown])[]) =>
  pairs.map(([args, value]) => ({ call, args, returns: value }));

/** To try the environment on, where there is no dataset. */
export const EXAMPLES: readonly Task[] = [
  {
    prompt: 'Write a Python function add(a, b) that returns the sum of two numbers.',
    solution: 'def add(a, b):\n    return a + b',
    tests: returns('add', [[1, 2], 3], [[-1, 1], 0]),
  },
  {
    prompt:
      'Write a Python function largest(numbers) that returns the largest number of a list, and None for an empty one.',
    solution: 'def largest(numbers):\n    return max(numbers, default=None)',
    tests: returns('largest', [[[3, 1, 2]], 3], [[[]], null], [[[-5]], -5]),
  },
  {
    prompt: 'Write a Python program that reads one line and prints its words in reverse order.',
    solution: 'print(*reversed(input().split()))',
    tests: [{ stdin: 'one two three\n', stdout: 'three two one\n' }],
  },
].map(({ prompt, ...metadata }, i) => ({ id: `code:${i}`, prompt, label: '', metadata: { prompt, ...metadata } }));

/** Says the solution where the task has one. */
export const solver: Player =
  ({ task }) =>
  () =>
    String(task.metadata.solution ?? '');

const ANSWERS = [
  ...EXAMPLES.map(({ metadata }) => String(metadata.solution)),
  ...['return None', 'pass', 'print(input())', 'def add(a, b):\n    return a - b', 'def largest(numbers): return 0'],
];

/** Says a solution of the examples, or a program that solves none, whatever is asked. */
export const guesser: Player = ({ seed }) => {
  const random = xoroshiro128plus(seed);
  return () => ANSWERS[uniformInt(random, 0, ANSWERS.length - 1)]!;
};
