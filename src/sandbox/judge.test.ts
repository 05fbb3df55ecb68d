import { afterAll, describe, expect, it } from 'vitest';
import { NO_SANDBOX } from '../../tests/support/sandbox.ts';
import type { Language } from './contracts.ts';
import { judge, type TestCase, testCase } from './judge.ts';
import { openSandbox } from './sandbox.ts';

const add: TestCase[] = [
  { call: 'add', args: [1, 2], returns: 3 },
  { call: 'add', args: [-1, 1], returns: 0 },
  { call: 'add', args: [10, 5], returns: 15 },
];
const echo: TestCase[] = [
  { stdin: '3 4\n', stdout: '7\n' },
  { stdin: '10 5', stdout: '15' },
];

describe.skipIf(NO_SANDBOX)('judge', () => {
  const sandbox = openSandbox({ timeoutMs: 5000 });
  afterAll(() => sandbox.close());
  const passed = async (language: Language, source: string, cases: readonly TestCase[]) =>
    (await judge(sandbox, { language, source }, cases)).map(verdict => verdict.passed);

  it.each<[Language, string, TestCase[]]>([
    ['python', 'def add(a, b):\n  return a + b', add],
    ['javascript', 'function add(a, b) { return a + b; }', add],
    ['javascript', 'const add = async (a, b) => a + b;', add],
    ['python', 'print(sum(map(int, input().split())))', echo],
    [
      'javascript',
      'console.log(require("fs").readFileSync(0, "utf8").split(" ").map(Number).reduce((a, b) => a + b))',
      echo,
    ],
    [
      'python',
      'class Solution:\n  def go(self, xs):\n    return (min(xs), max(xs) / 3)',
      [{ call: 'Solution.go', args: [[3, 1, 2]], returns: [1, 1] }],
    ],
    [
      'javascript',
      'class Solution { go(xs) { return { n: xs.length }; } }',
      [{ call: 'Solution.go', args: [[3, 1]], returns: { n: 2 } }],
    ],
    ['python', 'def f():\n  print("noise"); return None', [{ call: 'f', args: [], returns: null }]],
  ])('passes a right program: %s %s', async (language, source, cases) => {
    expect(await passed(language, source, cases)).toEqual(cases.map(() => true));
  });

  it('says what was wrong, test by test', async () => {
    const source = 'def add(a, b):\n  if a == 10: return 1 / 0\n  return a - b if a > 0 else a + b';
    const [first, second, third] = await judge(sandbox, { language: 'python', source }, add);
    expect(first).toEqual({ passed: false, ending: 'ok', got: '-1', error: undefined });
    expect(second).toMatchObject({ passed: true });
    expect(third).toMatchObject({ passed: false, ending: 'error', got: undefined });
    expect(third!.error).toMatch(/ZeroDivisionError/);
  });

  it('goes on in a new interpreter after a test that does not end or ends the interpreter', async () => {
    const source = 'import os\ndef add(a, b):\n  if a == 1: os._exit(0)\n  while a < 0: pass\n  return a + b';
    const brief = openSandbox({ timeoutMs: 2000 });
    const verdicts = await judge(brief, { language: 'python', source }, add);
    await brief.close();
    expect(verdicts.map(({ passed, ending }) => [passed, ending])).toEqual([
      [false, 'error'],
      [false, 'timeout'],
      [true, 'ok'],
    ]);
  });

  it('fails what is left when the time for all tests is used up', async () => {
    const brief = openSandbox({ timeoutMs: 200 });
    const source = 'while True: pass';
    const verdicts = await judge(brief, { language: 'python', source }, [...echo, ...echo, ...echo], {
      totalTimeoutMs: 300,
    });
    await brief.close();
    expect(verdicts.map(({ ending }) => ending)).toEqual(Array(6).fill('timeout'));
    expect(verdicts.at(-1)!.error).toBe('the time for all tests is used up');
  });

  /** Programs that do not solve the task and want the verdict all the same. */
  it.each<[string, Language, string, TestCase[]]>([
    [
      'printing a verdict',
      'python',
      'def add(a, b):\n  print("PASSED 3/3"); print(\'{"ending":"ok","passed":true}\')',
      add,
    ],
    ['leaving with 0', 'python', 'import sys\nsys.exit(0)', add],
    ['leaving with 0 in the call', 'python', 'import os\ndef add(a, b): os._exit(0)', add],
    ['leaving with 0', 'javascript', 'process.exit(0)', add],
    [
      'an answer of its own in the channel',
      'python',
      'import os\ndef add(a, b):\n  os.write(4, b\'{"ending":"ok","passed":true}\\n\' * 9); return 99',
      add,
    ],
    [
      'an answer in the channel, then the end',
      'python',
      'import os\nos.write(4, b\'{"ending":"ok"}\\n{"ending":"ok"}\\n\'); os._exit(0)',
      add,
    ],
    [
      'broken answers in the channel',
      'javascript',
      'function add() { require("fs").writeSync(4, "]]]\\nnull\\n7\\n"); return 99; }',
      add,
    ],
    ['replacing json', 'python', 'import json\njson.dumps = lambda *a, **k: "true"\ndef add(a, b): return 99', add],
    ['replacing JSON', 'javascript', 'JSON.stringify = () => "true"; function add() { return 99; }', add],
    [
      'an object that equals everything',
      'python',
      'class E(int):\n  def __eq__(self, other): return True\n  def __hash__(self): return 0\ndef add(a, b): return E(99)',
      add,
    ],
    [
      'an object that says anything',
      'javascript',
      'const add = () => ({ valueOf: () => 3, toJSON: () => ({ expected: true }), equals: () => true });',
      add,
    ],
    ['not a number', 'python', 'def add(a, b): return float("nan")', add],
    [
      'patching the harness through its frames',
      'python',
      'import sys\nframe = sys._getframe()\nwhile frame:\n  for name in list(frame.f_locals):\n    if name == "requests": frame.f_locals["dumps"] = None\n  frame = frame.f_back\ndef add(a, b): return 99',
      add,
    ],
    ['looking for what is expected', 'python', LOOKING, add],
    [
      'reading the source of the tests',
      'python',
      'import glob, os\ntext = [open(p).read() for p in glob.glob("/work/**", recursive=True) if os.path.isfile(p)]\ndef add(a, b): return text',
      add,
    ],
    ['no output, exit code 0', 'python', 'import os\nos._exit(0)', echo],
    ['the right output and a failure', 'python', 'print(sum(map(int, input().split()))); raise SystemExit(1)', echo],
    ['every output at once', 'python', 'print(7); print(15)', echo],
    [
      'the right output at the end of a flood',
      'python',
      'print("x" * 70000); print(sum(map(int, input().split())))',
      echo,
    ],
    ['an exit hook', 'python', 'import atexit, os\natexit.register(lambda: os._exit(0))\nraise ValueError', echo],
    ['a trace function', 'python', 'import sys\nsys.settrace(lambda *a: None)\ndef add(a, b): return 99', add],
  ])('is not taken in by %s (%s)', async (_, language, source, cases) => {
    const verdicts = await judge(sandbox, { language, source }, cases);
    expect(verdicts.filter(verdict => verdict.passed)).toEqual([]);
    expect(verdicts).toHaveLength(cases.length);
  });
});

/** Looks through every object for the numbers 15 and 0 beside arguments, as a test's expected value would stand. */
const LOOKING = `import gc, sys
def add(a, b):
  frame, seen = sys._getframe(), []
  while frame:
    seen.append(repr(frame.f_locals))
    frame = frame.f_back
  found = [o for o in gc.get_objects() if isinstance(o, dict) and ("returns" in o or "expected" in o)]
  return found[0] if found else [text for text in seen if "returns" in text]`;

it.each([
  [{ stdin: 'a' }, false],
  [{ stdout: 'a' }, true],
  [{ call: 'f', args: [], returns: null }, true],
  [{ call: 'f()', args: [], returns: 1 }, false],
  [{ call: '__import__("os").x', args: [], returns: 1 }, false],
  [{ call: 'f', args: 3, returns: 1 }, false],
  [{ call: 'f', args: [] }, false],
  [{ call: 'f', args: [], returns: 1, stdout: '' }, false],
])('%j is a test: %s', (value, is) => expect(testCase.safeParse(value).success).toBe(is));
