import type { Options } from '../options/option.ts';
import { isDeclared, lookup } from './lookup.ts';
import { isList, isSwitch } from './schema.ts';

/** One option set somewhere, not yet validated. `label` is how a fault speaks of it: `--a.b`, `a.b`, `f.yaml:3:5: a.b`. */
export type Assignment = { readonly name: string; readonly label: string } & (
  | { readonly words: readonly string[] }
  | { readonly value: unknown }
);

/** `name=value`, the name dotted or a single word. */
const OVERRIDE = /^([A-Za-z_][\w-]*(?:\.[\w-]+)*)=([\s\S]*)$/;
const isFlag = (word: string) => /^--\w/.test(word);

/**
 * Reads `--name value`, `--name=value`, `--name` and `--no-name` (switches), `--name a b c` (lists), `name=value`,
 * `--config file`, and bare words where options say so (`Option.position`). Other words are faults. Names are checked by the caller.
 */
export function readArguments(
  options: Options,
  argv: readonly string[],
  faults: string[],
): { readonly assignments: readonly Assignment[]; readonly configFile?: string } {
  const assignments: Assignment[] = [];
  const bare: string[] = [];
  let configFile: string | undefined;
  let at = 0;

  const takeValue = (name: string): Assignment | undefined => {
    const found = lookup(options, name);
    const option = 'name' in found ? options[found.name] : undefined;
    const words: string[] = [];
    if (option && isSwitch(option)) {
      words.push(argv[at] === 'true' || argv[at] === 'false' ? argv[at++]! : 'true');
    } else {
      // The number of values of an unknown option is unknown: all up to the next option belong to its fault.
      const many = option === undefined || isList(option);
      while (at < argv.length && !isFlag(argv[at]!) && (many ? !beginsOverride(argv[at]!) : words.length < 1)) {
        words.push(argv[at++]!);
      }
      if (option && words.length === 0) {
        faults.push(`--${name}: a value is missing`);
        return undefined;
      }
    }
    return { name, label: `--${name}`, words };
  };
  const beginsOverride = (word: string) => {
    const name = OVERRIDE.exec(word)?.[1];
    return name !== undefined && (name.includes('.') || isDeclared(options, name));
  };

  while (at < argv.length) {
    const word = argv[at++]!;
    if (isFlag(word)) {
      const equals = word.indexOf('=');
      const name = word.slice(2, equals < 0 ? undefined : equals);
      if (name === 'config') {
        configFile = equals < 0 ? argv[at++] : word.slice(equals + 1);
        if (!configFile || isFlag(configFile)) faults.push('--config: the path of a YAML file is missing');
      } else if (equals >= 0) {
        assignments.push({ name, label: `--${name}`, words: [word.slice(equals + 1)] });
      } else if (name.startsWith('no-')) {
        const negated = negate(options, name.slice('no-'.length));
        if ('fault' in negated) faults.push(`${word}: ${negated.fault}`);
        else assignments.push({ ...negated, label: word });
      } else {
        const assignment = takeValue(name);
        if (assignment) assignments.push(assignment);
      }
      continue;
    }
    const override = OVERRIDE.exec(word);
    if (override) assignments.push({ name: override[1]!, label: override[1]!, words: [override[2]!] });
    else bare.push(word);
  }
  for (const [place, word] of bare.entries()) {
    const name = Object.keys(options).find(one => options[one]!.position === place);
    if (name === undefined) faults.push(`${word}: not an option; write --name value or name=value`);
    else assignments.push({ name, label: name, words: [word] });
  }
  return { assignments, ...(configFile ? { configFile } : {}) };
}

function negate(options: Options, name: string): { name: string; value: false } | { fault: string } {
  const found = lookup(options, name);
  if ('fault' in found) return found;
  if (!isSwitch(options[found.name]!))
    return { fault: `${found.name} is not a switch; only switches have a --no- form` };
  return { name, value: false };
}
