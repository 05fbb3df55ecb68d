import { expect, it } from 'vitest';
import { z } from 'zod';
import { options } from '../options/option.ts';
import { compose, pick } from './compose.ts';
import { helpText, jsonSchema, markdown } from './describe.ts';

const declared = options({
  'actor.eps_clip': { schema: z.number().positive().default(0.2), help: 'Clip of the ratio', aliases: ['eps_clip'] },
  'actor.betas': { schema: z.tuple([z.number(), z.number()]).default([0.9, 0.95]), help: 'Decay.', unit: 'per step' },
  'algo.estimator': { schema: z.enum(['k1', 'k2']).default('k1'), help: 'Estimator' },
  'actor.offload': { schema: z.boolean().default(false), help: 'Offload' },
  'data.files': { schema: z.array(z.string()), help: 'Files' },
  'data.limit': { schema: z.number().int().nullable().default(null), help: 'Limit' },
});

it('describes options for --help, grouped by first word', () => {
  expect(helpText(declared)).toBe(`actor
  --actor.eps_clip <number>
      Clip of the ratio. (default 0.2)
  --actor.betas <number> <number>
      Decay [per step]. (default 0.9 0.95)
  --actor.offload
      Offload. (default off)

algo
  --algo.estimator k1|k2
      Estimator. (default k1)

data
  --data.files <text> ...
      Files. (required)
  --data.limit <integer>
      Limit.`);
});

it('names the other forms of an option on the command line', () => {
  const text = z.string().optional();
  const placed = options({
    'play.env': { schema: text, help: 'Environment.', position: 0, short: 'env' },
    'play.task': { schema: text, help: 'Task', position: 1 },
  });
  expect(helpText(placed)).toBe(`play
  --play.env <text>
      Environment; --env for short; the first bare word is it.
  --play.task <text>
      Task; the second bare word is it.`);
});

it('wraps long help', () => {
  const long = options({ x: { schema: z.string().default(''), help: 'word '.repeat(40).trim() } });
  const lines = helpText(long, { width: 60 }).split('\n').slice(2);
  expect(lines.length).toBeGreaterThan(2);
  expect(lines.every(line => line.length <= 60 && line.startsWith('      w'))).toBe(true);
});

it('makes a table for the docs', () => {
  expect(markdown(pick(declared, 'actor.eps_clip', 'algo.estimator'))).toBe(`### actor

| option | value | default | meaning |
|---|---|---|---|
| \`actor.eps_clip\` | a number > 0 | 0.2 | Clip of the ratio. Older: \`eps_clip\`. |

### algo

| option | value | default | meaning |
|---|---|---|---|
| \`algo.estimator\` | one of k1, k2 | k1 | Estimator. |`);
});

it('makes a JSON schema of the nested file', () => {
  expect(jsonSchema(pick(declared, 'actor.eps_clip', 'data.files'))).toEqual({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    additionalProperties: false,
    properties: {
      actor: {
        type: 'object',
        additionalProperties: false,
        properties: {
          eps_clip: { type: 'number', exclusiveMinimum: 0, default: 0.2, description: 'Clip of the ratio.' },
        },
      },
      data: {
        type: 'object',
        additionalProperties: false,
        properties: { files: { type: 'array', items: { type: 'string' }, description: 'Files.' } },
      },
    },
  });
});

it('refuses declarations that contradict each other', () => {
  const option = { schema: z.string().default(''), help: '' };
  expect(() => compose({ a: option }, { a: option })).toThrow('option name a is declared twice');
  expect(() => compose({ a: option }, { b: { ...option, aliases: ['a'] } })).toThrow('option name a is declared twice');
  expect(() => compose({ run: option }, { 'run.dir': option })).toThrow(
    'option run is also the beginning of option run.dir',
  );
  const changed = z
    .string()
    .transform(text => text.length)
    .default(0);
  expect(() => compose({ a: { schema: changed, help: '' } })).toThrow('the default of a is not a value that a accepts');
});
