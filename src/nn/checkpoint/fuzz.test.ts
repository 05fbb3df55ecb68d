import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCheckpoint, readConfig } from './directory.ts';
import { estimateMemory } from './memory.ts';
import { SafetensorsFile } from './safetensors.ts';
import { INDEX_FILE } from './shards.ts';

/** Whatever a file says, it is read or refused in words that name it, quickly and in little memory. */

const goldens = fileURLToPath(new URL('../../../tests/goldens/decoders/', import.meta.url));
const models = readdirSync(goldens);
const SHARDED = 'full-untied-sharded';
const BUDGET = { seed: 3, numRuns: 400 };

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-fuzz-'));
  for (const model of models) cpSync(join(goldens, model), join(root, model), { recursive: true });
});
afterAll(() => rmSync(root, { recursive: true }));

/** Runs `read`; true when it refused, which must be an error of ours that names `where`. */
function refuses(read: () => unknown, where: string): boolean {
  try {
    read();
    return false;
  } catch (error) {
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
    expect((error as Error).message).toContain(where);
    expect((error as Error).message.length).toBeGreaterThan(where.length + 15);
    return true;
  }
}

const number = fc.oneof(
  fc.constantFrom(0, -1, 1, 2, 3, 0.5, 1e-320, 2 ** 31, 2 ** 32, 2 ** 52, 2 ** 53, 1e20, 1e308, -(2 ** 53)),
  fc.integer({ min: -4, max: 64 }),
);
const word = fc.constantFrom(
  '',
  'x',
  'silu',
  'linear',
  'yarn',
  'full_attention',
  '__proto__',
  'toString',
  'LlamaForCausalLM',
);
const value: fc.Arbitrary<unknown> = fc.letrec(tie => ({
  any: fc.oneof(
    { maxDepth: 2 },
    number,
    word,
    fc.constant(null),
    fc.boolean(),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(
      fc.constantFrom('rope_type', 'type', 'factor', 'rope_theta', '0', 'full_attention', '__proto__'),
      tie('any'),
    ),
  ),
})).any;

describe('config.json', () => {
  const configs = models.map(model => JSON.parse(readFileSync(join(goldens, model, 'config.json'), 'utf8')) as object);
  const fields = [
    ...new Set(configs.flatMap(config => Object.keys(config))),
    'rope_scaling',
    'score',
    'quantization_config',
  ];

  it('with other values', () => {
    const edit = fc.tuple(fc.constantFrom(...fields), fc.option(value, { nil: undefined }));
    let [refused, estimated] = [0, 0];
    const change = fc.tuple(fc.nat(models.length - 1), fc.array(edit, { minLength: 1, maxLength: 3 }));
    fc.assert(
      fc.property(change, ([place, edits]) => {
        const directory = join(root, models[place]!);
        // An entry of undefined is left out.
        writeFileSync(
          join(directory, 'config.json'),
          JSON.stringify({ ...configs[place], ...Object.fromEntries(edits) }),
        );
        if (refuses(() => readConfig(directory), join(directory, 'config.json'))) {
          refused++;
          return;
        }
        const { weights, activations } = estimateMemory(readConfig(directory).config, { training: true, maxTokens: 1 });
        expect(weights).toBeGreaterThan(0);
        expect(activations).toBeGreaterThan(0);
        estimated++;
        refuses(() => openCheckpoint(directory), directory);
      }),
      BUDGET,
    );
    expect(Math.min(refused, estimated)).toBeGreaterThan(BUDGET.numRuns / 10);
  });

  it('with other bytes', () => {
    const directory = join(root, models[0]!);
    const text = JSON.stringify(configs[0]);
    const edit = fc.tuple(
      fc.nat(text.length),
      fc.nat(3),
      fc.constantFrom('', '"', '{', '}', ',', '9', '-', 'e9', '\\', '\ud800', '\0'),
    );
    let refused = 0;
    fc.assert(
      fc.property(edit, ([at, cut, insert]) => {
        writeFileSync(join(directory, 'config.json'), text.slice(0, at) + insert + text.slice(at + cut));
        if (refuses(() => openCheckpoint(directory), directory)) refused++;
      }),
      BUDGET,
    );
    expect(refused).toBeGreaterThan(BUDGET.numRuns / 2);
  });
});

describe('a safetensors header', () => {
  const offset = fc.oneof(fc.constantFrom(0, 4, 8, 16), number);
  const entry = fc.record(
    {
      dtype: fc.oneof(fc.constantFrom('F32', 'F16', 'BF16', 'I64', 'F8_E4M3'), word),
      shape: fc.oneof(fc.array(fc.oneof(fc.constantFrom(0, 1, 2, 4), number), { maxLength: 4 }), value),
      data_offsets: fc.oneof(fc.tuple(offset, offset), value),
    },
    { requiredKeys: ['dtype'] },
  );
  const name = fc.constantFrom('a', 'b', 'c', '__metadata__', '__proto__', 'constructor', '');
  const header = fc.oneof({ weight: 5, arbitrary: fc.dictionary(name, fc.oneof(entry, value), { maxKeys: 4 }) }, value);

  it('with any entries, of any length it claims', () => {
    const file = join(root, 'any.safetensors');
    let refused = 0;
    const claims = fc.oneof(fc.constant(0), fc.constantFrom(-1, 1, 8, 2 ** 31, 1e8, 1e8 + 1, Number.MAX_SAFE_INTEGER));
    fc.assert(
      fc.property(header, claims, fc.constantFrom(0, 4, 8, 16), (content, claim, dataBytes) => {
        const text = Buffer.from(JSON.stringify(content));
        const length = Buffer.alloc(8);
        length.writeBigUInt64LE(BigInt(Math.max(0, text.length + claim)));
        writeFileSync(file, Buffer.concat([length, text, Buffer.alloc(dataBytes)]));
        const read = () => {
          const opened = new SafetensorsFile(file);
          try {
            for (const tensor of opened.tensors.keys()) expect(opened.readTensor(tensor).length).toBeLessThanOrEqual(8);
          } finally {
            opened.close();
          }
        };
        if (refuses(read, file)) refused++;
      }),
      { ...BUDGET, numRuns: 1000 },
    );
    expect(refused).toBeGreaterThan(700);
  });
});

describe('an index of shards', () => {
  it('with any map', () => {
    const directory = join(root, SHARDED);
    const index = join(directory, INDEX_FILE);
    cpSync(join(goldens, SHARDED, 'config.json'), join(directory, 'config.json'));
    const { weight_map: whole } = JSON.parse(readFileSync(index, 'utf8')) as { weight_map: Record<string, string> };
    const file = fc.oneof(
      fc.constantFrom(
        ...new Set(Object.values(whole)),
        '../x.safetensors',
        '/etc/passwd',
        'x.safetensors',
        'pytorch_model.bin',
        '',
        '.',
      ),
      value,
    );
    const tensor = fc.oneof(fc.constantFrom(...Object.keys(whole)), fc.constantFrom('', 'x', '__proto__', 'toString'));
    const map = fc.oneof({ weight: 4, arbitrary: fc.dictionary(tensor, file, { minKeys: 1, maxKeys: 3 }) }, value);
    const whether = fc.boolean();
    let refused = 0;
    fc.assert(
      fc.property(map, whether, (edits, keep) => {
        const content = keep && typeof edits === 'object' ? { ...whole, ...edits } : edits;
        writeFileSync(index, JSON.stringify({ weight_map: content }));
        if (refuses(() => openCheckpoint(directory), directory)) refused++;
      }),
      BUDGET,
    );
    expect(refused).toBeGreaterThan(BUDGET.numRuns / 2);
  });
});
