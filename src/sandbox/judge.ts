import { z } from 'zod';
import { sameJson, sameOutput } from './compare.ts';
import type { Ending, Evaluation, Interpreter, Language, Sandbox } from './contracts.ts';

/** What a program must do: print something for an input, or return something for arguments. */
export const testCase = z.union([
  z.strictObject({ stdin: z.string().default(''), stdout: z.string() }),
  /** `call` names a function, or `Class.method`; arguments and result are JSON. */
  z.strictObject({
    call: z.string().regex(/^[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*$/),
    args: z.array(z.json()),
    returns: z.json(),
  }),
]);
export type TestCase = z.output<typeof testCase>;
type CallCase = Extract<TestCase, { readonly call: string }>;
type OutputCase = Exclude<TestCase, CallCase>;

export interface Verdict {
  readonly passed: boolean;
  /** How the program or the call ended; a test may fail although it ended well. */
  readonly ending: Ending;
  /** What it printed (beginning), or returned as JSON; undefined where it did not. */
  readonly got: string | undefined;
  /** The traceback, or what went wrong. */
  readonly error: string | undefined;
}

export interface JudgeOptions {
  readonly signal?: AbortSignal | undefined;
  /** For all tests of one program, in ms, from the moment it has an interpreter; tests beyond fail. 20 s when not given. */
  readonly totalTimeoutMs?: number | undefined;
}

/**
 * Runs a program on its tests; one verdict for each, in order. The program is given inputs and never what is expected
 * of it: that stays here, where what came back is compared, so that nothing it can do in its sandbox (leave early,
 * write into the channel, replace functions) passes a test except the right value.
 * Each test of an output runs in an interpreter of its own; calls share one, and where it dies in one of them, the
 * next ones have a new one.
 * @throws what the sandbox throws when it cannot run anything; never for what the program does
 */
export async function judge(
  sandbox: Sandbox,
  { language, source }: { readonly language: Language; readonly source: string },
  cases: readonly TestCase[],
  { signal, totalTimeoutMs = 20_000 }: JudgeOptions = {},
): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  let spent = 0;
  while (verdicts.length < cases.length) {
    if (spent >= totalTimeoutMs) {
      verdicts.push({ passed: false, ending: 'timeout', got: undefined, error: 'the time for all tests is used up' });
      continue;
    }
    const next = cases[verdicts.length]!;
    const body = async (interpreter: Interpreter) => {
      const began = performance.now();
      if ('call' in next)
        await judgeCalls(
          interpreter,
          source,
          cases,
          verdicts,
          () => totalTimeoutMs - spent - (performance.now() - began),
        );
      else verdicts.push(await judgeOutput(interpreter, source, next));
      spent += performance.now() - began;
    };
    await sandbox.use(language, body, signal);
  }
  return verdicts;
}

async function judgeOutput(interpreter: Interpreter, source: string, { stdin, stdout }: OutputCase): Promise<Verdict> {
  const { ending, stdout: got, stderr, cut } = await interpreter.run({ source, stdin });
  const passed = ending === 'ok' && !cut && sameOutput(got, stdout);
  return { passed, ending, got, error: ending === 'ok' ? undefined : stderr || ending };
}

/** Calls from the first without a verdict on, until a test of another kind, the end, or the end of the interpreter. */
async function judgeCalls(
  interpreter: Interpreter,
  source: string,
  cases: readonly TestCase[],
  verdicts: Verdict[],
  left: () => number,
): Promise<void> {
  const defined = await interpreter.exec(source);
  if (!interpreter.alive || defined.ending !== 'ok') {
    for (let at = verdicts.length; at < cases.length && 'call' in cases[at]!; at++) verdicts.push(verdictOf(defined));
    return;
  }
  for (let next = cases[verdicts.length]; next !== undefined && 'call' in next; next = cases[verdicts.length]) {
    if (!interpreter.alive || left() <= 0) return;
    verdicts.push(verdictOf(await interpreter.call(next.call, next.args), next));
  }
}

function verdictOf({ ending, value, error }: Evaluation, expected?: CallCase): Verdict {
  const passed = expected !== undefined && ending === 'ok' && value !== undefined && returns(value, expected.returns);
  return { passed, ending, got: value, error };
}

function returns(value: string, expected: unknown): boolean {
  try {
    return sameJson(JSON.parse(value), expected);
  } catch {
    return false; // the program wrote into the channel itself, and not JSON
  }
}
