import { z } from 'zod';
import { editDistance } from '../options/nearest.ts';
import type { Option, Options, Values } from '../options/option.ts';
import { type Assignment, readArguments } from './arguments.ts';
import { withoutCredentials } from './credentials.ts';
import { ConfigError } from './error.ts';
import { readConfigFile } from './file.ts';
import { foreign } from './foreign.ts';
import { lookup } from './lookup.ts';
import { expected, fromWords, jsonSchemaOf, parseGiven } from './schema.ts';

const ANYTHING = { schema: z.unknown(), help: '' };

export interface Resolved<T extends Options> {
  readonly values: Values<T>;
  /** One line each, for the user: older names that were understood. */
  readonly notices: readonly string[];
  /** Path of the file given by `--config`, as given. */
  readonly configFile?: string;
}

/**
 * Values of all options: defaults, then the file of `--config`, then the command line from left to right, the later
 * one winning. A `key=value` that names no option is left to the option that says so (`Option.restOf`).
 *
 * Throws a ConfigError with one line for each fault found, all sources taken together.
 */
export function resolve<T extends Options>(
  options: T,
  { argv, cwd }: { readonly argv: readonly string[]; readonly cwd: string },
): Resolved<T> {
  const faults: string[] = [];
  const notices: string[] = [];
  const command = readArguments(options, argv, faults);
  const fromFile = command.configFile === undefined ? [] : readConfigFile(options, command.configFile, cwd, faults);

  const given = new Set(
    [...fromFile, ...command.assignments].flatMap(({ name }) => {
      const found = lookup(options, name);
      return 'name' in found ? [found.name] : [];
    }),
  );
  const restOption = Object.keys(options).find(name => given.has(options[name]!.restOf ?? ''));
  const rest: Record<string, unknown> = {};
  const assigned = new Map<string, Assignment & { readonly raw: unknown }>();
  for (const assignment of [...fromFile, ...command.assignments]) {
    const found = lookup(options, assignment.name);
    if ('fault' in found && restOption !== undefined && isBareOverride(assignment)) {
      rest[assignment.name] = fromWords(ANYTHING, assignment.words);
      continue;
    }
    if ('fault' in found) {
      faults.push(`${assignment.label}: ${found.fault}`);
      continue;
    }
    if (found.name !== assignment.name && options[found.name]!.short !== assignment.name) {
      notices.push(`${assignment.label} is an older name of ${found.name}; both are understood`);
    }
    const raw = 'words' in assignment ? fromWords(options[found.name]!, assignment.words) : assignment.value;
    assigned.set(found.name, { ...assignment, raw });
  }

  if (restOption !== undefined && Object.keys(rest).length > 0) {
    const before = assigned.get(restOption)?.raw;
    const raw = typeof before === 'object' ? { ...before, ...rest } : rest;
    assigned.set(restOption, { name: restOption, label: restOption, value: raw, raw });
  }

  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(options)) {
    const assignment = assigned.get(name);
    const parsed = assignment ? parseGiven(option, assignment.raw) : option.schema.safeParse(undefined);
    values[name] = parsed.data;
    if (parsed.success) continue;
    const wanted = whatIsWanted(option, parsed.error, assignment?.raw);
    faults.push(
      assignment === undefined
        ? `${name} is missing; ${wanted} (${option.help.replace(/\.$/, '')})`
        : `${assignment.label} is ${withoutCredentials(JSON.stringify(assignment.raw))}; ${wanted}`,
    );
  }
  if (faults.length > 0) throw new ConfigError(faults);
  const { configFile } = command;
  return {
    values: values as Values<T>,
    notices,
    ...(configFile === undefined ? {} : { configFile }),
  };
}

/** `key=value` with a key of one word, which no option has; a name that another framework has is not taken for one. */
function isBareOverride(assignment: Assignment): assignment is Assignment & { readonly words: readonly string[] } {
  const { name, label } = assignment;
  return 'words' in assignment && label === name && !name.includes('.') && foreign(name) === undefined;
}

/** A rule of its own that the value breaks (a refinement, a form of text), else what the schema accepts; names nearest first. */
function whatIsWanted(option: Option, { issues }: z.ZodError, given: unknown): string {
  const rule = issues.find(({ code }) => code === 'custom' || code === 'invalid_format');
  if (rule !== undefined) return rule.message.replace(/^Invalid string: /, '');
  const schema = jsonSchemaOf(option);
  if (typeof given !== 'string' || !schema.enum) return `expected ${expected(schema)}`;
  const distance = (name: unknown) => editDistance(given, String(name));
  return `expected ${expected({ ...schema, enum: schema.enum.toSorted((a, b) => distance(a) - distance(b)) })}`;
}
