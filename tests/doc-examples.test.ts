import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../src/cli/dispatch.ts';
import { resolve } from '../src/config/load.ts';
import { root } from './support/process.ts';

/** What the pages show is real: code stands in a file that is compiled or run, commands have only options that exist. */

function below(directory: string, name: RegExp): string[] {
  const entries = readdirSync(join(root, directory), { recursive: true, withFileTypes: true });
  return entries.filter(entry => entry.isFile() && name.test(entry.name)).map(one => join(one.parentPath, one.name));
}
const text = (path: string) => readFileSync(path, 'utf8');
const pages = [
  ...below('docs', /\.md$/),
  ...below('examples', /\.md$/),
  join(root, 'CONTRIBUTING.md'),
  join(root, 'README.md'),
];
const sources = ['src', 'examples', 'tests/types', 'tests/own-environment.test.ts'].flatMap(place =>
  place.endsWith('.ts') ? [join(root, place)] : below(place, /\.(ts|js)$/),
);

/** Fenced blocks of TypeScript and JavaScript. */
function codeOf(page: string): string[] {
  return [...text(page).matchAll(/^```(?:ts|js)\n(.*?)^```$/gms)].map(([, code]) => code!.trim());
}

/** Words of each `npx tokenloop …` line; lines that stand for more (`…`) are left out. */
function commandsOf(page: string): string[][] {
  const lines = text(page).replaceAll('\\\n', ' ').split('\n');
  return lines
    .flatMap(line => /^\s*npx tokenloop (.*?)(?:\s+(?:&&|\||#).*)?$/.exec(line)?.[1] ?? [])
    .filter(words => !words.includes('...'))
    .map(words => [...words.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!));
}

describe.each(pages.map(page => relative(root, page)))('%s', name => {
  const page = join(root, name);

  it('shows code that stands in a file', () => {
    const all = sources.map(text);
    for (const code of codeOf(page)) expect(all.some(source => source.includes(code)) || code).toBe(true);
  });

  it('shows commands with options that exist', async () => {
    for (const [command, ...argv] of commandsOf(page)) {
      const { options } = (await COMMANDS[command!]!.load()).command;
      // --resume takes the options of a run that is there on the reader's machine.
      if (argv.includes('--help') || argv.includes('--resume')) continue;
      expect(() => resolve(options, { argv, cwd: root }), [command, ...argv].join(' ')).not.toThrow();
    }
  });

  it('links to files that are there', () => {
    const links = [...text(page).matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)].map(([, link]) => link!);
    for (const link of links) expect(() => readFileSync(join(page, '..', link)), link).not.toThrow();
  });
});

it('finds code and commands at all', () => {
  expect(pages.flatMap(codeOf).length).toBeGreaterThan(8);
  expect(pages.flatMap(commandsOf).length).toBeGreaterThan(15);
});
