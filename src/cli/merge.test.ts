import { EventEmitter } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loraGolden } from '../../tests/support/goldens.ts';
import { Model } from '../engines/onnx/model.ts';
import { openCheckpoint } from '../nn/checkpoint/directory.ts';
import { mergedTensors } from '../nn/models/lora.ts';
import { tensorPlaces } from '../nn/models/parameters.ts';
import { dispatch } from './dispatch.ts';

const { base, directory } = loraGolden('biases-qv');
let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'tokenloop-merge-'));
  cpSync(base, join(cwd, 'base'), { recursive: true });
  cpSync(directory, join(cwd, 'adapter'), { recursive: true });
});
afterEach(() => rmSync(cwd, { recursive: true }));

async function merge(...more: string[]) {
  const [out, err]: [string[], string[]] = [[], []];
  const io = {
    stdin: Readable.from([]),
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: (text: string) => err.push(text) },
    cwd,
    signals: Object.assign(new EventEmitter(), { exit: () => undefined }),
    verbose: false,
  };
  const argv = ['merge', '--model', 'base', '--adapter', 'adapter', '--output', 'merged', ...more];
  return { code: await dispatch(argv, io), out: out.join(''), err: err.join('') };
}

it('writes the merged checkpoint', async () => {
  const target = join(cwd, 'merged');
  expect(await merge()).toEqual({ code: 0, out: `model: ${target}\n`, err: '' });
  const { adapter, weights } = new Model(base, undefined, undefined, { directory });
  const expected = mergedTensors(adapter!, weights, adapter!.base.weights);
  const { layout, weights: merged } = openCheckpoint(target);
  for (const place of tensorPlaces(layout)) {
    expect(merged.slice(place.offset, place.offset + place.size)).toEqual(expected(place).slice());
  }
  const exact = readFileSync(join(target, 'model.safetensors')).length;
  expect((await merge('--dtype', 'bfloat16')).code).toBe(0);
  expect(readFileSync(join(target, 'model.safetensors')).length).toBeLessThan(0.7 * exact);
  expect(JSON.parse(readFileSync(join(target, 'config.json'), 'utf8')).dtype).toBe('bfloat16');
});

it('says what is wrong, and writes nothing', async () => {
  rmSync(join(cwd, 'adapter', 'adapter_config.json'));
  const { code, err } = await merge();
  expect(code).toBe(1);
  expect(err).toMatch(/adapter_config\.json: no such file; give the directory of an adapter/);
  expect(() => openCheckpoint(join(cwd, 'merged'))).toThrow();
});
