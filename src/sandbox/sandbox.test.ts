import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { NO_SANDBOX, opened } from '../../tests/support/sandbox.ts';
import type { Language } from './contracts.ts';
import { openSandbox } from './sandbox.ts';

describe.skipIf(NO_SANDBOX)('a program', () => {
  const sandbox = opened({ timeoutMs: 20_000 });
  const run = (language: Language, source: string, stdin = '') => sandbox.run({ language, source, stdin });

  it.each<[Language, string]>([
    ['python', 'import sys\nprint(input() + "!")\nprint(sys.stdin.read(), end="", file=sys.stderr)'],
    [
      'javascript',
      'const [a, ...b] = require("fs").readFileSync(0, "utf8").split("\\n"); console.log(a + "!"); process.stderr.write(b.join("\\n"))',
    ],
    [
      'javascript',
      'import { readFileSync } from "node:fs";\nconst [a, ...b] = readFileSync("/dev/stdin", "utf8").split("\\n"); console.log(a + "!"); process.stderr.write(b.join("\\n"))',
    ],
  ])('reads its input and writes its output: %s', async (language, source) => {
    const ran = await run(language, source, 'grün\nb\n');
    expect(ran).toMatchObject({ ending: 'ok', exitCode: 0, stdout: 'grün!\n', stderr: 'b\n', cut: false });
  });

  it('of JavaScript is the main module, in both kinds', async () => {
    const main = 'if (require.main === module) console.log("main", __filename, typeof globalThis.require);';
    expect((await run('javascript', main)).stdout).toBe('main /work/main.js undefined\n');
    const module = 'export const x = await Promise.resolve(1); console.log(x, process.argv[1], import.meta.url);';
    expect((await run('javascript', module)).stdout).toBe('1 /work/main.mjs file:///work/main.mjs\n');
  });

  it('runs in a virtual environment, with its packages', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'venv-'));
    // What `python -m venv` makes, as readable as it makes it.
    chmodSync(directory, 0o755);
    const packages = join(directory, 'lib', `python${pythonVersion()}`, 'site-packages');
    mkdirSync(join(directory, 'bin'));
    mkdirSync(packages, { recursive: true });
    writeFileSync(join(directory, 'pyvenv.cfg'), 'home = /usr/bin\n');
    writeFileSync(join(packages, 'answer.py'), 'x = 42');
    symlinkSync('/usr/bin/python3', join(directory, 'bin', 'python3'));
    symlinkSync('python3', join(directory, 'bin', 'python'));
    try {
      const own = opened({ timeoutMs: 20_000, warm: 0, python: join(directory, 'bin', 'python') });
      expect((await own.run({ language: 'python', source: 'import answer; print(answer.x)' })).stdout).toBe('42\n');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('has its files and arguments', async () => {
    const source = 'import sys, lib.one\nprint(lib.one.x, sys.argv, open("data.txt").read(), __name__)';
    const files = { 'lib/one.py': 'x = 7', 'data.txt': 'text' };
    const { stdout } = await sandbox.run({ language: 'python', source, files, args: ['a b', '$HOME'] });
    expect(stdout).toBe("7 ['main.py', 'a b', '$HOME'] text __main__\n");
  });

  it.each<[Language, string, object]>([
    ['python', 'def f():\n  return 1 / 0\nf()', { ending: 'error', exitCode: 1 }],
    ['python', 'print((', { ending: 'error', exitCode: 1 }],
    ['python', 'import sys; sys.exit(3)', { ending: 'error', exitCode: 3 }],
    ['python', 'import sys; sys.exit()', { ending: 'ok', exitCode: 0 }],
    ['python', 'x = bytearray(10**9)', { ending: 'memory' }],
    ['python', 'import os; os.kill(os.getpid(), 11)', { ending: 'killed' }],
    ['javascript', 'null.x', { ending: 'error', exitCode: 1 }],
    ['javascript', 'process.exitCode = 4', { ending: 'error', exitCode: 4 }],
    ['javascript', 'const a = []; for (;;) a.push(new Uint8Array(1e7).fill(1))', { ending: 'memory' }],
    ['javascript', 'const a = []; for (;;) a.push(new Array(1e5).fill(1.5))', { ending: 'memory' }],
  ])('%s ends as it ends: %s', async (language, source, expected) => {
    expect(await run(language, source)).toMatchObject(expected);
  });

  it('that fails leaves a traceback of its own lines only', async () => {
    const { stderr } = await run('python', 'def f():\n  return 1 / 0\nf()');
    expect(stderr).toMatch(/^Traceback.*\n {2}File "\/work\/main\.py", line 3, in <module>\n {4}f\(\)\n/);
    expect(stderr).toMatch(/ZeroDivisionError: division by zero\n$/);
    expect(stderr).not.toContain('<string>');
  });

  it.each<[Language, string]>([
    ['python', 'while True: pass'],
    [
      'python',
      'import signal, time\nfor s in range(1, 32):\n  try: signal.signal(s, signal.SIG_IGN)\n  except OSError: pass\nwhile True: time.sleep(9)',
    ],
    ['javascript', 'for (;;) {}'],
  ])('of %s that does not end is ended: %s', async (language, source) => {
    const brief = opened({ timeoutMs: 300 });
    const ran = await brief.run({ language, source });
    expect(ran).toMatchObject({ ending: 'timeout', exitCode: undefined });
  });

  it('is the same each time: hashes and random numbers of JavaScript', async () => {
    const source = 'print(hash("a"), {"x", "y", "z"})';
    expect((await run('python', source)).stdout).toBe((await run('python', source)).stdout);
    const random = 'console.log(Math.random())';
    expect((await run('javascript', random)).stdout).toBe((await run('javascript', random)).stdout);
  });

  it('is stopped with its signal', async () => {
    const control = new AbortController();
    const running = sandbox.run({ language: 'python', source: 'while True: pass' }, control.signal);
    control.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
  });
});

describe.skipIf(NO_SANDBOX)('interpreters', () => {
  it.each<[Language, string[], (string | undefined)[]]>([
    [
      'python',
      ['x = 41', 'x + 1', 'def f(a):\n  return [a, x]', 'f("é")', 'import math; math.pi'],
      [undefined, '42', undefined, "['é', 41]", '3.141592653589793'],
    ],
    [
      'javascript',
      ['let x = 41', 'x + 1', 'const f = a => [a, x]', 'f("é")', 'Promise.resolve(3)'],
      [undefined, '42', undefined, "[ 'é', 41 ]", '3'],
    ],
  ])('of %s keep their state from cell to cell', async (language, cells, values) => {
    const session = await opened({ timeoutMs: 20_000 }).start(language);
    for (const [i, cell] of cells.entries()) {
      expect(await session.exec(cell)).toMatchObject({ ending: 'ok', value: values[i], stdout: '', error: undefined });
    }
    await session.close();
  });

  it('leave every name to the cells', async () => {
    const session = await opened({ timeoutMs: 20_000 }).start('javascript');
    const cells = [
      'const fs = require("fs"), path = require("path")',
      'let cell = 1, run = 2, request = 3',
      'fs.existsSync(path.sep)',
    ];
    for (const cell of cells) expect(await session.exec(cell)).toMatchObject({ ending: 'ok' });
    await session.close();
  });

  it('tell errors with their cell, and go on', async () => {
    const session = await opened({ timeoutMs: 20_000 }).start('python');
    await session.exec('def f():\n  return 1 / 0');
    const failed = await session.exec('print("before")\nf()');
    expect(failed).toMatchObject({ ending: 'error', stdout: 'before\n', value: undefined });
    expect(failed.error).toMatch(
      /File "<cell 2>", line 2, in <module>\n {4}f\(\)\n {2}File "<cell 1>", line 2, in f\n/,
    );
    expect((await session.exec('import sys; sys.exit(0)')).error).toContain('SystemExit');
    expect((await session.exec('x = (')).error).toContain("'(' was never closed");
    expect((await session.exec('x = [0] * 10**9')).ending).toBe('memory');
    expect(await session.exec('1')).toMatchObject({ ending: 'ok', value: '1' });
    await session.close();
  });

  it.each<[Language, string]>([
    ['python', 'import os; os._exit(0)'],
    ['javascript', 'process.exit(0)'],
  ])('of %s that are ended by a cell say so', async (language, cell) => {
    const session = await opened({ timeoutMs: 20_000 }).start(language);
    expect(await session.exec(cell)).toMatchObject({
      ending: 'error',
      error: 'the interpreter ended with exit code 0',
    });
    expect(session.alive).toBe(false);
    await expect(session.exec('1')).rejects.toThrow(/has ended; start another/);
  });

  it('are ended with the cell that does not end', async () => {
    const session = await opened({}).start('python');
    expect(await session.exec('while True: pass', 200)).toMatchObject({ ending: 'timeout', error: 'timeout' });
    expect(session.alive).toBe(false);
  });

  it.each<[Language, string]>([
    ['python', 'import os; os.close(1)'],
    ['javascript', 'require("fs").closeSync(1)'],
  ])('of %s whose cell closes its output are ended at the deadline', async (language, cell) => {
    const session = await opened({}).start(language);
    expect(await session.exec(cell, 500)).toMatchObject({ ending: 'timeout', error: 'timeout' });
    expect(session.alive).toBe(false);
  });

  it('show the output of a cell up to the limit, and that of the next one from its beginning', async () => {
    const session = await opened({ outputBytes: 64 }).start('python');
    expect((await session.exec('print("x" * 1000)')).stdout).toBe(`${'x'.repeat(64)}\n[... 937 bytes cut]`);
    expect(await session.exec('print("next")')).toMatchObject({ stdout: 'next\n', cut: false });
    await session.close();
  });

  it('answer at any length', async () => {
    const session = await opened({ timeoutMs: 20_000 }).start('javascript');
    expect((await session.exec('"äöü".repeat(50_000).length')).value).toBe('150000');
    await session.exec('const long = () => "aäöü".repeat(50_000)');
    expect((await session.call('long', [])).value).toBe(JSON.stringify('aäöü'.repeat(50_000)));
    await session.close();
  });

  it('are fresh for each program, also when started ahead', async () => {
    const sandbox = opened({ warm: 2, concurrency: 1 });
    await sandbox.warm('python', 2);
    const source = 'import os\nprint(os.listdir("."))\nopen("left", "w")';
    const runs = await Promise.all(Array.from({ length: 4 }, () => sandbox.run({ language: 'python', source })));
    expect(runs.map(({ stdout }) => stdout)).toEqual(Array(4).fill("['main.py']\n"));
  });

  it('are no longer given once the sandbox is closed', async () => {
    const sandbox = openSandbox();
    await sandbox.warm('python', 1);
    await sandbox.close();
    await expect(sandbox.run({ language: 'python', source: '1' })).rejects.toThrow('closed');
  });
});

describe('without bubblewrap', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('nothing is run', async () => {
    vi.stubEnv('PATH', '/nowhere');
    const refused = opened({}).run({ language: 'python', source: '1' });
    await expect(refused).rejects.toThrow(/^bubblewrap is not on PATH, .*install it, or allow .*isolation none$/);
  });

  it('programs run where it is allowed, and then it is said', async () => {
    const warnings: string[] = [];
    const listen = (warning: Error) => warnings.push(warning.message);
    process.on('warning', listen);
    const sandbox = opened({ isolation: 'none', timeoutMs: 20_000, node: process.execPath, warm: 0 });
    const ran = await sandbox.run({ language: 'javascript', source: 'console.log(process.env.SECRET, 1 + 1)' });
    process.off('warning', listen);
    expect(ran).toMatchObject({ ending: 'ok', stdout: 'undefined 2\n' });
    expect(warnings.join()).toMatch(/rights of this user.*files.*network/);
  });

  it.each([
    [{ python: '/nowhere/python3', isolation: 'none' as const }, /python \/nowhere\/python3 does not run/],
    [{ node: '/nowhere/node', isolation: 'none' as const }, /node \/nowhere\/node is not there/],
  ])('%j is refused with what is wrong', async (options, message) => {
    const language = 'python' in options ? 'python' : 'javascript';
    await expect(opened(options).run({ language, source: '1' })).rejects.toThrow(message);
  });

  it.each([{ timeoutMs: 0 }, { memoryMiB: 1 }, { isolation: 'docker' }, { memory: 3 }])('%j is no setting', options => {
    expect(() => openSandbox(options as never)).toThrow(/^settings of the sandbox: /);
  });
});

const pythonVersion = () =>
  spawnSync('/usr/bin/python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], {
    encoding: 'utf8',
  }).stdout.trim();
