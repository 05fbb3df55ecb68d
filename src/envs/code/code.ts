import { z } from 'zod';
import type { Message } from '../../episode/task.ts';
import { programOf } from '../../sandbox/extract.ts';
import { judge, type Verdict } from '../../sandbox/judge.ts';
import { sharedSandbox } from '../../sandbox/sandbox.ts';
import { sandboxSettings } from '../../sandbox/settings.ts';
import type { Environment, StepResult } from '../contracts.ts';
import { defineEnvironment } from '../definition.ts';
import { describeFailure, shortFailure } from './feedback.ts';
import { type CodeTask, EXAMPLES, guesser, readCodeTask, solver } from './tasks.ts';
import { VerdictMemory } from './verdict-memory.ts';

const parameters = z.strictObject({
  language: z.enum(['python', 'javascript']).default('python'),
  /** Programs that are tested, per episode. */
  attempts: z.int().min(1).default(3),
  /** `all`: the reward is for passing every test. `share`: the last attempt earns the share that it passes. */
  credit: z.enum(['all', 'share']).default('all'),
  /** What a later attempt is worth beside the one before. */
  discount: z.number().min(0).max(1).default(1),
  /** `full`: what was called, returned and expected, or the traceback; `short`: `f(1,2)=3`. */
  feedback: z.enum(['full', 'short']).default('full'),
  /** So many tests, from the first, may be told of; of the others only that one failed. All when not given. */
  shown: z.int().min(0).optional(),
  /** For all tests of one attempt, in ms. */
  totalTimeoutMs: z.int().min(50).default(20_000),
  /** Verdicts that are kept, so that the same program is not run again on the same tests; 0 runs all. */
  remembered: z.int().min(0).default(1024),
  ...sandboxSettings.shape,
});
type Parameters = z.output<typeof parameters>;

/**
 * Programs that must pass tests: the policy answers with a program (its last fenced block, or all of its text), which
 * runs in a sandbox on the column `tests` of its task (sandbox/judge.ts); it is told of the first test that fails, and
 * may try again. A column `template` puts its text around the answer, whose place there is `{}`.
 *
 *   user       Write a Python function add(a, b) …
 *   assistant  def add(a, b): return a - b
 *   user       Test 1 of 2 failed: add(1, 2) returned -1, expected 3.
 *   assistant  def add(a, b): return a + b                               reward 1
 *
 * Metrics: `solved` and `solved_first` (at the first attempt), 0 or 1; `tests_passed`, the share at the last attempt;
 * `tests_timeout`, attempts that were stopped.
 */
export const code = defineEnvironment({
  name: 'code',
  version: 1,
  help: 'Programs in Python or JavaScript that must pass the tests of their task, run in a sandbox.',
  parameters,
  maxTurns: ({ attempts }) => attempts,
  tasks: EXAMPLES,
  players: () => ({ random: guesser, oracle: solver }),
  make: given => testedPrograms(given),
});

const memory = new VerdictMemory();

function testedPrograms(given: Parameters, used = 0, known?: CodeTask): Environment {
  const {
    language,
    attempts,
    credit,
    discount,
    feedback,
    shown = Infinity,
    totalTimeoutMs,
    remembered,
    ...rest
  } = given;
  let attempt = used;
  let task = known;
  const verdictsOf = (source: string, tests: CodeTask['tests']) => {
    // Not under the signal of this episode: another one may wait for the same verdicts. It ends by its own limits.
    const run = () => judge(sharedSandbox(rest), { language, source }, tests, { totalTimeoutMs });
    return memory.get([language, source, tests, totalTimeoutMs, rest], run, remembered);
  };
  return {
    reset(row) {
      task = readCodeTask(row);
      const { prompt } = row;
      const observation: readonly Message[] = typeof prompt === 'string' ? [{ role: 'user', content: prompt }] : prompt;
      return { observation, stateKey: 'start' };
    },
    async step({ actionText }): Promise<StepResult> {
      const { tests, program } = task!;
      const verdicts = await verdictsOf(program(programOf(actionText, language)), tests);
      const worth = discount ** attempt;
      attempt += 1;
      const share = verdicts.filter(({ passed }) => passed).length / verdicts.length;
      const solved = share === 1 ? 1 : 0;
      const stopped = verdicts.some(({ ending }) => ending === 'timeout') ? 1 : 0;
      if (solved === 0 && attempt < attempts) {
        const content = told(verdicts, tests, { feedback, shown });
        return {
          reward: 0,
          done: false,
          feedback: [{ role: 'user', content }],
          stateKey: `${attempt} ${content}`,
          metrics: { solved: 0, solved_first: 0, tests_passed: 0, tests_timeout: stopped },
        };
      }
      const first = attempt === 1 ? solved : 0;
      return {
        reward: worth * (credit === 'share' ? share : solved),
        score: solved,
        done: true,
        metrics: { solved, solved_first: first, tests_passed: share, tests_timeout: stopped },
      };
    },
    fork: () => testedPrograms(given, attempt, task),
  };
}

function told(
  verdicts: readonly Verdict[],
  tests: CodeTask['tests'],
  { feedback, shown }: { readonly feedback: Parameters['feedback']; readonly shown: number },
): string {
  const failed = verdicts.findIndex(({ passed }) => !passed);
  if (failed >= shown) return feedback === 'short' ? '?' : 'All tests that are shown pass; one of the others fails.';
  if (feedback === 'short') return shortFailure(tests[failed]!);
  return describeFailure(tests[failed]!, verdicts[failed]!, `${failed + 1} of ${tests.length}`);
}
