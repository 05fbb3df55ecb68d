import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Document, isAlias, isMap, isScalar, LineCounter, type Node, parseDocument } from 'yaml';
import type { Options } from '../options/option.ts';
import type { Assignment } from './arguments.ts';
import { ConfigError } from './error.ts';
import { isDeclared, lookup } from './lookup.ts';

/**
 * Reads a YAML file whose keys are dotted, nested or both. Faults name file, line and column; a file that cannot be
 * read, or whose YAML cannot be understood, throws at once.
 */
export function readConfigFile(options: Options, path: string, cwd: string, faults: string[]): Assignment[] {
  let text: string;
  try {
    text = readFileSync(resolve(cwd, path), 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const problem =
      code === 'ENOENT' ? `no such file (looked in ${cwd})` : code === 'EISDIR' ? 'is a directory' : String(cause);
    throw new ConfigError([`--config ${path}: ${problem}; give the path of a YAML file`], { cause });
  }
  return readConfigText(options, text, path, faults);
}

/** As `readConfigFile`, from the text of the file; `path` is only shown. */
export function readConfigText(options: Options, text: string, path: string, faults: string[]): Assignment[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const position = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${path}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    throw new ConfigError(document.errors.map(error => `${position(error.pos[0])}: ${error.message}`));
  }
  if (document.contents === null) return [];
  const assignments: Assignment[] = [];
  const setAt = new Map<string, string>();

  const visit = (node: Node | null, prefix: string) => {
    const map = resolveAlias(node, document);
    if (!isMap(map)) {
      const at = position(node?.range?.[0] ?? 0);
      faults.push(`${at}: ${prefix || 'the file'} must hold "name: value" lines, not ${JSON.stringify(map)}`);
      return;
    }
    for (const { key, value } of map.items as { key: Node; value: Node | null }[]) {
      const written = isScalar(key) ? String(key.value) : String(key);
      const name = prefix === '' ? written : `${prefix}.${written}`;
      if (isGroup(options, name, resolveAlias(value, document))) {
        visit(value, name);
        continue;
      }
      const at = position(key.range?.[0] ?? 0);
      const label = `${at}: ${name}`;
      const found = lookup(options, name);
      const canonical = 'name' in found ? found.name : name;
      const earlier = setAt.get(canonical);
      if (earlier !== undefined) faults.push(`${label}: already set at ${earlier}; keep one of them`);
      else assignments.push({ name, label, value: value?.toJS(document) ?? null });
      setAt.set(canonical, earlier ?? at);
    }
  };
  visit(document.contents, '');
  return assignments;
}

function resolveAlias(node: Node | null, document: Document): Node | null {
  return isAlias(node) ? (node.resolve(document) ?? null) : node;
}

/** Whether the key begins longer names. An unknown name with a mapping below it is one, so that its leaves are named. */
function isGroup(options: Options, name: string, value: Node | null): boolean {
  if (isDeclared(options, name)) return false;
  return (
    Object.keys(options).some(declared => declared.startsWith(`${name}.`)) || (isMap(value) && value.items.length > 0)
  );
}
