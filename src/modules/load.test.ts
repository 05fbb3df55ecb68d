import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lineIn, loadModule, provideModules } from './load.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tokenloop-modules-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(join(directory, name), text);
  return name;
}

describe('loadModule', () => {
  it.each([
    ['plain.mjs', 'export const answer = 42;\nexport default class A {}\n'],
    [
      'typed.ts',
      "import { basename } from 'node:path';\nenum N { A = 42 }\nexport const answer: number = N.A;\nexport default class A { constructor(readonly name: string = basename('/a')) {} }\n",
    ],
    ['typed.mts', 'export const answer: number = 42;\nexport default class A<T> { value?: T }\n'],
  ])('loads %s', async (name, text) => {
    const { exports } = await loadModule(file(name, text), 'train.agent_func_path', directory);
    expect(exports.answer).toBe(42);
    expect(typeof exports.default).toBe('function');
  });

  it('loads what the file imports, TypeScript too', async () => {
    file('helper.ts', 'export const double = (x: number): number => 2 * x;\n');
    const user = file('user.ts', "import { double } from './helper.ts';\nexport const four = double(2);\n");
    expect((await loadModule(user, 'x', directory)).exports.four).toBe(4);
  });

  it('gives TypeScript the modules that are provided, also to what it imports, where nothing is installed', async () => {
    const given = { four: 4 };
    provideModules({ 'not-installed': async () => given, 'not-installed/part': async () => ({ default: 5 }) });
    file('inner.ts', "import * as all from 'not-installed';\nexport default all;\n");
    const outer = "import { four } from 'not-installed';\nimport five from 'not-installed/part';\n";
    const name = file(
      'outer.ts',
      `${outer}import all from './inner.ts';\nexport const nine = four + five;\nexport { all };\n`,
    );
    const { exports } = await loadModule(name, 'x', directory);
    provideModules({});
    expect(exports.nine).toBe(9);
    expect(exports.all).toMatchObject(given);
  });

  it('says which exports there are, with their lines', async () => {
    const name = file('exports.ts', 'const a = 1;\n\nexport const helper = a;\nexport default { a };\n');
    const loaded = await loadModule(name, 'x', directory);
    expect(loaded.describe()).toBe('it exports helper (line 3), default (line 4)');
    expect((await loadModule(file('none.mjs', 'const a = 1;\n'), 'x', directory)).describe()).toMatch(
      /none\.mjs exports nothing$/,
    );
  });

  it.each<[string, string, string, string | RegExp]>([
    [
      'a syntax error in TypeScript',
      'broken.ts',
      'const a: number = 1;\nexport const b = (;\n',
      /^opt broken\.ts:2:18: /,
    ],
    [
      'a syntax error in JavaScript',
      'broken.mjs',
      'export const b = 1;\nexport const b = (;\n',
      /^opt broken\.mjs.*: \S/,
    ],
    [
      'an error while it loads',
      'throws.ts',
      'const a: number[] = [];\n\n(a[3] as unknown as string).trim();\nexport default a;\n',
      /^opt throws\.ts:3:\d+: Cannot read properties of undefined/,
    ],
    [
      'an import that does not exist',
      'imports.ts',
      "import { x } from './nowhere.ts';\nexport default x;\n",
      /nowhere\.ts/,
    ],
  ])('names file and line of %s', async (_, name, text, message) => {
    await expect(loadModule(file(name, text), 'opt', directory)).rejects.toThrow(message);
  });

  it('says where it looked for a file that is not there', async () => {
    await expect(loadModule('no.ts', 'opt', directory)).rejects.toThrow(
      `opt no.ts: no such file (looked for ${join(directory, 'no.ts')})`,
    );
  });
});

describe('lineIn', () => {
  it('finds the line in a stack, and nothing where there is none', () => {
    const error = new TypeError('boo');
    error.stack = 'TypeError: boo\n    at step (/a/b.ts:12:7)\n    at run (/c.ts:1:1)';
    expect(lineIn('/a/b.ts', error)).toBe(':12:7');
    expect(lineIn('/a/other.ts', error)).toBe('');
    expect(lineIn('/a/b.ts', 'text')).toBe('');
  });
});
