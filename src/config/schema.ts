import { parse } from 'yaml';
import { z } from 'zod';
import type { Option } from '../options/option.ts';

/** What an option accepts, read from its zod schema through JSON Schema, so that the declaration stays the only source. */
export type JsonSchema = {
  readonly type?: string | readonly string[];
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly items?: JsonSchema | false;
  readonly prefixItems?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
};

const cache = new WeakMap<z.ZodType, JsonSchema>();

export function jsonSchemaOf(option: Option): JsonSchema {
  let schema = cache.get(option.schema);
  if (schema === undefined) {
    const { $schema: _, ...rest } = z.toJSONSchema(option.schema, { io: 'input', unrepresentable: 'any' });
    schema = rest as JsonSchema;
    cache.set(option.schema, schema);
  }
  return schema;
}

/** A switch stands alone on the command line: `--train.async_enable`. */
export function isSwitch(option: Option): boolean {
  return jsonSchemaOf(option).type === 'boolean';
}

/** A list takes every word up to the next option. */
export function isList(option: Option): boolean {
  const schema = jsonSchemaOf(option);
  return [schema, ...(schema.anyOf ?? [])].some(({ type }) => type === 'array' || (type ?? []).includes('array'));
}

/** Its value when nobody sets it; undefined when it has none. `required` tells an absent value from a forbidden one. */
export function defaultOf(option: Option): { readonly required: boolean; readonly value: unknown } {
  const parsed = option.schema.safeParse(undefined);
  return { required: !parsed.success, value: parsed.data };
}

/** Checks a value that was given. null takes the value of an optional option away, also where null itself is no value. */
export function parseGiven(option: Option, given: unknown) {
  const parsed = option.schema.safeParse(given);
  if (parsed.success || given !== null) return parsed;
  const absent = option.schema.safeParse(undefined);
  return absent.success && absent.data === undefined ? absent : parsed;
}

/** What the schema accepts, as the end of the sentence "expected …". */
export function expected(schema: JsonSchema): string {
  if (schema.enum) return `one of ${schema.enum.join(', ')}`;
  if (schema.const !== undefined) return String(schema.const);
  if (schema.anyOf) return schema.anyOf.map(expected).join(' or ');
  if (Array.isArray(schema.type)) return schema.type.map(type => expected({ ...schema, type })).join(' or ');
  switch (schema.type) {
    case 'boolean':
      return 'true or false';
    case 'integer':
      return `an integer${bounds(schema)}`;
    case 'number':
      return `a number${bounds(schema)}`;
    case 'string':
      return schema.minLength ? 'text that is not empty' : 'text';
    case 'null':
      return 'null';
    case 'array':
      if (schema.prefixItems)
        return `${schema.prefixItems.length} values: ${schema.prefixItems.map(expected).join(', ')}`;
      return `a list of ${schema.items ? `values, each ${expected(schema.items)}` : 'values'}`;
    case 'object':
      return 'a mapping';
    default:
      return 'a value';
  }
}

function bounds(schema: JsonSchema): string {
  // zod bounds every integer by what a double holds exactly; that is not worth saying.
  const stated = (bound: number | undefined) =>
    Math.abs(bound ?? Infinity) < Number.MAX_SAFE_INTEGER ? bound : undefined;
  const parts = [
    [stated(schema.minimum), '>='],
    [stated(schema.exclusiveMinimum), '>'],
    [stated(schema.maximum), '<='],
    [stated(schema.exclusiveMaximum), '<'],
  ] as const;
  const said = parts.filter(([bound]) => bound !== undefined).map(([bound, sign]) => `${sign} ${bound}`);
  return said.length > 0 ? ` ${said.join(' and ')}` : '';
}

/** Short form for `--help` and the docs: `<integer>`, `k1|k2|k3`, `<number> <number>`; a switch has none. */
export function placeholder(schema: JsonSchema): string {
  if (schema.enum) return schema.enum.join('|');
  if (schema.const !== undefined) return String(schema.const);
  if (schema.anyOf) {
    return schema.anyOf
      .filter(({ type }) => type !== 'null')
      .map(placeholder)
      .join('|');
  }
  if (Array.isArray(schema.type)) return placeholder({ ...schema, type: schema.type.find(type => type !== 'null') });
  if (schema.type === 'boolean') return '';
  if (schema.type === 'array') {
    if (schema.prefixItems) return schema.prefixItems.map(placeholder).join(' ');
    return `${placeholder(schema.items || {})} ...`;
  }
  return `<${schema.type === 'string' ? 'text' : schema.type === 'object' ? 'mapping' : (schema.type ?? 'value')}>`;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function scalar(word: string): unknown {
  if (NUMBER.test(word)) return Number(word);
  if (word === 'true') return true;
  if (word === 'false') return false;
  return word === 'null' ? null : word;
}

/**
 * The value that the words after a flag stand for: of number, switch, null, text, list and `{key: value}`, the first that
 * the option accepts; when it accepts none, the most natural one, so that the fault can show it.
 */
export function fromWords(option: Option, words: readonly string[]): unknown {
  const text = words.join(' ');
  const items = words.length === 1 ? splitList(text) : [...words];
  const readings: unknown[] = [
    ...(words.length === 1 ? [scalar(text), text] : []),
    items.map(scalar),
    items,
    ...(text === 'none' ? [null] : []),
    ...(text.startsWith('{') ? [mapping(text)] : []),
  ];
  const accepted = readings.find(reading => parseGiven(option, reading).success);
  return accepted !== undefined ? accepted : readings[0];
}

/** A YAML mapping in braces; text that is none stays text, so that the fault shows it as it was written. */
function mapping(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return text;
  }
}

function splitList(text: string): string[] {
  const inner = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  return inner.trim() === '' ? [] : inner.split(',').map(item => item.trim());
}
