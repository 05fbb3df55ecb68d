import { existsSync, readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createJiti } from 'jiti';

/** A user's file, loaded: what it exports, and where each export stands. */
export interface UserModule {
  /** As the user gave it, and where it is. */
  readonly path: string;
  readonly file: string;
  readonly exports: Readonly<Record<string, unknown>>;
  /** The exports with their lines, for messages: `default (line 3), helper (line 9)`. */
  describe(): string;
}

type Provided = Readonly<Record<string, () => Promise<unknown>>>;
let provided: Provided = {};

/** Modules that TypeScript of the user's gets under these names, whatever is installed beside it. */
export function provideModules(modules: Provided): void {
  provided = modules;
}

/**
 * Loads a file that exports something of the user's: JavaScript as Node does, TypeScript without a build step and
 * without checking its types. A relative path starts at `cwd`. The same file is loaded once.
 * @param what what the path is, for messages: the option that named it
 * @throws Error that names the file, the line where there is one, and what to do
 */
export async function loadModule(path: string, what: string, cwd: string = process.cwd()): Promise<UserModule> {
  const file = resolve(cwd, path);
  if (!existsSync(file)) throw new Error(`${what} ${path}: no such file (looked for ${file})`);
  const exports = await evaluate(file).catch((error: unknown) => {
    throw new Error(`${what} ${path}${lineIn(file, error)}: ${reasonOf(file, error)}`, { cause: error });
  });
  return { path, file, exports, describe: () => describe(file, exports) };
}

async function evaluate(file: string): Promise<Record<string, unknown>> {
  const isTypeScript = /\.[cm]?tsx?$/.test(file);
  const loaded: unknown = isTypeScript ? await transpile(file) : await import(pathToFileURL(file).href);
  return loaded as Record<string, unknown>;
}

async function transpile(file: string): Promise<unknown> {
  const loading = Object.entries(provided).map(async ([name, load]) => [name, await load()] as const);
  const virtualModules = Object.fromEntries(await Promise.all(loading));
  return createJiti(import.meta.url, { fsCache: false, interopDefault: false, virtualModules }).import(file);
}

/** Where inside the user's file something went wrong, as `:line:column`; empty when the error does not say. */
export function lineIn(file: string, error: unknown): string {
  if (!(error instanceof Error)) return '';
  const escaped = file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const at = new RegExp(`${escaped}:(\\d+)(?::(\\d+))?`).exec(`${error.message}\n${error.stack ?? ''}`);
  return at === null ? '' : `:${at[1]}${at[2] === undefined ? '' : `:${at[2]}`}`;
}

/** The message without the path, which is said already. */
function reasonOf(file: string, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const lines = message.split('\n').map(line => line.trim());
  return lines.filter(line => line !== '' && !line.startsWith(file)).join(' ') || message;
}

function describe(file: string, exports: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(exports);
  if (names.length === 0) return `${relative(process.cwd(), file)} exports nothing`;
  const lines = readFileSync(file, 'utf8').split('\n');
  const placed = names.map(name => ({
    name,
    line: 1 + lines.findIndex(line => /^\s*export\b/.test(line) && new RegExp(`\\b${name}\\b`).test(line)),
  }));
  placed.sort((a, b) => a.line - b.line);
  const shown = placed.slice(0, 8).map(({ name, line }) => (line === 0 ? name : `${name} (line ${line})`));
  return `it exports ${shown.join(', ')}`;
}
