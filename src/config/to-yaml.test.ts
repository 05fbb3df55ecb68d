import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { z } from 'zod';
import { options, type Values } from '../options/option.ts';
import { resolve } from './load.ts';
import { toYaml } from './to-yaml.ts';

const declared = options({
  'actor.adam.lr': { schema: z.number(), help: 'Learning rate' },
  'data.path': { schema: z.string(), help: 'File: # of tasks' },
  'actor.adam.betas': { schema: z.tuple([z.number(), z.number()]), help: 'Decay', unit: 'per step' },
  'train.enable': { schema: z.boolean(), help: 'On' },
  'eval.files': { schema: z.array(z.string()), help: 'Files' },
  'eval.limit': { schema: z.number().int().nullable(), help: 'Limit' },
  'run.dir': { schema: z.string().optional(), help: 'Directory' },
  'env.args': { schema: z.record(z.string(), z.json()), help: 'Arguments' },
});

const cwd = mkdtempSync(join(tmpdir(), 'tokenloop-yaml-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function reload(values: Values<typeof declared>) {
  writeFileSync(join(cwd, 'config.yaml'), toYaml(values, declared));
  return resolve(declared, { argv: ['--config', 'config.yaml'], cwd }).values;
}

it('is nested, with a comment for each option', () => {
  const values = {
    'actor.adam.lr': 1e-6,
    'data.path': 'a: b',
    'actor.adam.betas': [0.9, 0.95],
    'train.enable': false,
    'eval.files': [],
    'eval.limit': null,
    'run.dir': undefined,
    'env.args': { max: 3 },
  } as const;
  expect(toYaml(values as unknown as Values<typeof declared>, declared)).toBe(`actor:
  adam:
    # Learning rate
    lr: 0.000001
    # Decay [per step]
    betas: [ 0.9, 0.95 ]
data:
  # File: # of tasks
  path: "a: b"
train:
  # On
  enable: false
eval:
  # Files
  files: []
  # Limit
  limit: null
env:
  # Arguments
  args: { max: 3 }
`);
});

it('loads back to the same values', () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true });
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('no', '1e-6', 'null', '~', '# x', '- a', 'a\nb', ' a ', '', '&a', '*a', '0x10', '"', '1_000'),
  );
  fc.assert(
    fc.property(
      fc.record({
        'actor.adam.lr': number,
        'data.path': text,
        'actor.adam.betas': fc.tuple(number, number),
        'train.enable': fc.boolean(),
        'eval.files': fc.array(text),
        'eval.limit': fc.option(fc.integer()),
        'run.dir': fc.option(text, { nil: undefined }),
        'env.args': fc.dictionary(
          text.filter(key => key !== '__proto__'),
          fc.oneof(text, number, fc.boolean()),
        ),
      }),
      values => {
        expect(reload(values)).toEqual(values);
      },
    ),
    { numRuns: 300 },
  );
});
