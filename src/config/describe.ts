import type { Option, Options } from '../options/option.ts';
import { defaultOf, expected, jsonSchemaOf, placeholder } from './schema.ts';

/** Help text, documentation table and JSON schema of options, all from their declarations. */

/** Options by the first word of their names, in the order in which the words first occur. */
export function groups(options: Options): Map<string, (readonly [string, Option])[]> {
  const grouped = new Map<string, (readonly [string, Option])[]>();
  for (const entry of Object.entries(options)) {
    const word = entry[0].split('.')[0]!;
    grouped.set(word, [...(grouped.get(word) ?? []), entry]);
  }
  return grouped;
}

/** The part of `--help` that lists the options. */
export function helpText(options: Options, { width = 100 }: { readonly width?: number } = {}): string {
  const indent = 6;
  const sections: string[] = [];
  for (const [word, entries] of groups(options)) {
    const lines = entries.flatMap(([name, option]) => [
      `  ${`--${name} ${placeholder(jsonSchemaOf(option))}`.trimEnd()}`,
      ...wrap(`${sentence(option)}${defaultNote(option)}`, width - indent).map(line => ' '.repeat(indent) + line),
    ]);
    sections.push([word, ...lines].join('\n'));
  }
  return sections.join('\n\n');
}

/** Markdown: one table for each first word, a row for each option. */
export function markdown(options: Options): string {
  const cell = (text: string) => text.replaceAll('|', '\\|');
  return [...groups(options)]
    .map(([word, entries]) => {
      const rows = entries.map(([name, option]) => {
        const older = option.aliases?.length
          ? ` Older: ${option.aliases.map(alias => `\`${alias}\``).join(', ')}.`
          : '';
        const cells = [`\`${name}\``, expected(jsonSchemaOf(option)), defaultText(option), sentence(option) + older];
        return `| ${cells.map(cell).join(' | ')} |`;
      });
      return [`### ${word}`, '', '| option | value | default | meaning |', '|---|---|---|---|', ...rows].join('\n');
    })
    .join('\n\n');
}

interface SchemaNode {
  type: 'object';
  properties: Record<string, unknown>;
  additionalProperties: false;
}

/** JSON schema of a config file in its nested form, for editors. Nothing is required: flags can add what it leaves out. */
export function jsonSchema(options: Options): object {
  const node = (): SchemaNode => ({ type: 'object', properties: {}, additionalProperties: false });
  const root = node();
  for (const [name, option] of Object.entries(options)) {
    const words = name.split('.');
    const last = words.pop()!;
    let parent = root;
    for (const word of words) {
      parent.properties[word] ??= node();
      parent = parent.properties[word] as SchemaNode;
    }
    parent.properties[last] = { ...jsonSchemaOf(option), description: sentence(option) };
  }
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...root };
}

function sentence({ help, unit, short, position }: Option): string {
  const forms = [
    ...(short === undefined ? [] : [`--${short} for short`]),
    ...(position === undefined ? [] : [`the ${['first', 'second'][position]} bare word is it`]),
  ];
  return `${help.replace(/\.$/, '')}${unit ? ` [${unit}]` : ''}${forms.map(form => `; ${form}`).join('')}.`;
}

function defaultNote(option: Option): string {
  const text = defaultText(option);
  return text === 'none' ? '' : text === 'required' ? ' (required)' : ` (default ${text})`;
}

function defaultText(option: Option): string {
  const { required, value } = defaultOf(option);
  if (required) return 'required';
  if (value === undefined || value === null) return 'none';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (typeof value === 'number') return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
  if (Array.isArray(value)) return value.length > 0 ? value.join(' ') : 'none';
  return typeof value === 'object' ? JSON.stringify(value) : value === '' ? 'empty' : String(value);
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
