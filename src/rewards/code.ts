import { z } from 'zod';
import { explain } from '../episode/explain.ts';
import type { Language } from '../sandbox/contracts.ts';
import { programOf } from '../sandbox/extract.ts';
import { judge, type TestCase, testCase } from '../sandbox/judge.ts';
import { openSandbox } from '../sandbox/sandbox.ts';
import type { SandboxOptions } from '../sandbox/settings.ts';
import { perSample, type RewardFunction, type RewardInput } from './contracts.ts';

export interface CodeRewardOptions {
  readonly language: Language;
  /** The tests of an answer; the column `tests` of its task when not given. */
  readonly tests?: ((input: RewardInput) => readonly TestCase[]) | undefined;
  /** Takes the program out of the answer; the last fenced block, else all of it, when not given. */
  readonly extract?: ((text: string) => string) | undefined;
  /** `all`: 1 when every test passes, else 0. `share`: the share of tests that pass. `all` when not given. */
  readonly credit?: 'all' | 'share' | undefined;
  /** For all tests of one answer, in ms; 20 s when not given. */
  readonly totalTimeoutMs?: number | undefined;
  readonly sandbox?: SandboxOptions | undefined;
}

const column = z.array(testCase).min(1);

/**
 * Runs the program of an answer on its tests in a sandbox (sandbox/judge.ts). The score, by which tasks count as
 * solved, is 1 when all pass. Metrics: `tests_passed`, the share, and `tests_timeout`, 1 when one was stopped.
 * A task without readable tests, or a sandbox that cannot be had, is an error: it fails the episode.
 */
export function codeReward(options: CodeRewardOptions): RewardFunction {
  const { language, credit = 'all', extract = text => programOf(text, language), totalTimeoutMs } = options;
  const sandbox = openSandbox(options.sandbox);
  return perSample(async input => {
    const tests = options.tests?.(input) ?? testsOf(input);
    const program = { language, source: extract(input.text) };
    const verdicts = await judge(sandbox, program, tests, { signal: input.signal, totalTimeoutMs });
    const share = verdicts.filter(({ passed }) => passed).length / verdicts.length;
    const score = share === 1 ? 1 : 0;
    const stopped = verdicts.some(({ ending }) => ending === 'timeout') ? 1 : 0;
    return {
      reward: credit === 'share' ? share : score,
      score,
      metrics: { tests_passed: share, tests_timeout: stopped },
    };
  });
}

function testsOf({ task }: RewardInput): TestCase[] {
  const { tests } = task.metadata;
  const parsed = column.safeParse(tests);
  if (parsed.success) return parsed.data;
  throw new Error(`task ${task.id}, column tests: ${explain(parsed.error, tests)}`);
}
