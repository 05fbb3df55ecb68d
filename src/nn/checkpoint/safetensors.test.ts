import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decode16, encodeBFloat16 } from './dtypes.ts';
import { SafetensorsFile, writeSafetensors } from './safetensors.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tokenloop-safetensors-'));
});
afterAll(() => rmSync(directory, { recursive: true }));
const path = () => join(directory, 'file.safetensors');

/** A file with this header (as JSON text or bytes) and this many bytes of data, whose length is stated as it is. */
function fileWith(header: string | Uint8Array, data: Uint8Array | number, length?: bigint): string {
  const text = typeof header === 'string' ? new TextEncoder().encode(header) : header;
  const prefix = new Uint8Array(8);
  new DataView(prefix.buffer).setBigUint64(0, length ?? BigInt(text.length), true);
  const tail = typeof data === 'number' ? new Uint8Array(data) : data;
  writeFileSync(path(), Buffer.concat([prefix, text, tail]));
  return path();
}

function readAll(file: string): Record<string, Float32Array> {
  const open = new SafetensorsFile(file);
  try {
    return Object.fromEntries([...open.tensors.keys()].map(name => [name, open.readTensor(name)]));
  } finally {
    open.close();
  }
}

const every16 = Uint16Array.from({ length: 65536 }, (_, i) => i);
const isNaN16 = (dtype: 'F16' | 'BF16', bits: number) =>
  dtype === 'F16' ? (bits & 0x7fff) > 0x7c00 : (bits & 0x7fff) > 0x7f80;

describe('safetensors', () => {
  it('gives back bit for bit what was written', async () => {
    const tensor = fc.record({
      name: fc.string({ unit: 'grapheme' }).filter(name => name !== '__metadata__'),
      rows: fc.nat(4),
      data: fc.float32Array({ maxLength: 30, noNaN: true }),
    });
    const tensors = fc.uniqueArray(tensor, { selector: t => t.name, maxLength: 6 });
    const metadata = fc.dictionary(fc.string(), fc.string());
    await fc.assert(
      fc.asyncProperty(tensors, metadata, async (drawn, meta) => {
        const written = drawn.map(({ name, rows, data }) => ({
          name,
          shape: rows > 0 && data.length % rows === 0 ? [rows, data.length / rows] : [data.length],
          data,
        }));
        await writeSafetensors(path(), written, { metadata: meta });
        const file = new SafetensorsFile(path());
        expect({ ...file.metadata }).toEqual({ ...meta });
        expect([...file.tensors.keys()].sort()).toEqual(written.map(({ name }) => name).sort());
        for (const { name, shape, data } of written) {
          expect(file.tensors.get(name)!.shape).toEqual(shape);
          expect(new Uint32Array(file.readTensor(name).buffer)).toEqual(new Uint32Array(data.slice().buffer));
        }
        file.close();
      }),
      { numRuns: 100, seed: 1 },
    );
  });

  it('reads into a part of a larger array and leaves the rest alone', async () => {
    await writeSafetensors(path(), [{ name: 'a', shape: [3], data: Float32Array.of(1, 2, 3) }]);
    const file = new SafetensorsFile(path());
    const flat = new Float32Array(5);
    file.readTensor('a', flat.subarray(1, 4));
    expect([...flat]).toEqual([0, 1, 2, 3, 0]);
    expect(() => file.readTensor('a', flat)).toThrow('"a" has 3 elements, the array given 5');
    expect(() => file.readTensor('b')).toThrow('no tensor "b"');
    file.close();
  });

  it.each(['F16', 'BF16'] as const)('reads every %s value', dtype => {
    const header = JSON.stringify({ a: { dtype, shape: [65536], data_offsets: [0, 131072] } });
    const values = readAll(fileWith(header, new Uint8Array(every16.buffer))).a!;
    const [exponentBits, mantissaBits, bias] = dtype === 'F16' ? [5, 10, 15] : [8, 7, 127];
    for (const bits of every16) {
      const exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
      const mantissa = (bits & ((1 << mantissaBits) - 1)) / 2 ** mantissaBits;
      let size = exponent === 0 ? mantissa * 2 ** (1 - bias) : (1 + mantissa) * 2 ** (exponent - bias);
      if (exponent === (1 << exponentBits) - 1) size = mantissa === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
      expect(values[bits]).toBe(bits >> 15 ? -size : size);
    }
  });

  it('writes BF16 that reads as the same values where they are representable', async () => {
    const values = new Float32Array(65536);
    decode16('BF16', every16, values);
    await writeSafetensors(path(), [{ name: 'a', shape: [256, 256], data: values }], { dtype: 'BF16' });
    const back = readAll(path()).a!;
    for (const bits of every16) {
      if (isNaN16('BF16', bits)) expect(back[bits]).toBeNaN();
      else expect(back[bits]).toBe(values[bits]);
    }
  });

  it('rounds to the nearest BF16 value, ties to even', () => {
    fc.assert(
      fc.property(
        fc.float({ noNaN: true, noDefaultInfinity: true, max: Math.fround(3e38), min: -Math.fround(3e38) }),
        value => {
          const bits = encodeBFloat16(Float32Array.of(value))[0]!;
          const neighbours = new Float32Array(3);
          decode16('BF16', Uint16Array.of(bits - 1, bits, bits + 1), neighbours);
          const distance = Math.abs(neighbours[1]! - value);
          for (const other of [neighbours[0]!, neighbours[2]!]) {
            if (Number.isNaN(other)) continue;
            expect(Math.abs(other - value)).toBeGreaterThanOrEqual(distance);
            if (Math.abs(other - value) === distance) expect(bits % 2).toBe(0);
          }
        },
      ),
      { numRuns: 2000, seed: 1 },
    );
    expect([...encodeBFloat16(Float32Array.of(3.4e38, Number.NaN))]).toEqual([0x7f80, 0x7fc0]);
  });

  it('refuses to write what it could not read', async () => {
    const data = new Float32Array(4);
    await expect(writeSafetensors(path(), [{ name: 'a', shape: [3], data }])).rejects.toThrow(
      'needs 3 elements, got 4',
    );
    const twice = [0, 1].map(() => ({ name: 'a', shape: [4], data }));
    await expect(writeSafetensors(path(), [{ name: '__metadata__', shape: [4], data }])).rejects.toThrow('is taken');
    await expect(writeSafetensors(path(), twice)).rejects.toThrow('the tensor name "a" is taken already');
  });
});

describe('a damaged file', () => {
  const entry = (shape: number[], start: number, end: number, dtype = 'F32') => ({
    dtype,
    shape,
    data_offsets: [start, end],
  });
  const json = JSON.stringify;

  it.each<[string, string, number, string]>([
    ['no JSON', '{"a":', 0, 'the header is not JSON'],
    ['no object', '[1]', 0, 'the header is not a JSON object'],
    ['a name twice', `{"a":${json(entry([1], 0, 4))},"\\u0061":${json(entry([1], 0, 4))}}`, 4, 'names "a" twice'],
    ['a field twice', '{"a":{"dtype":"F32","shape":[1],"shape":[2],"data_offsets":[0,8]}}', 8, 'names "shape" twice'],
    ['a missing field', '{"a":{"dtype":"F32","shape":[1]}}', 4, 'tensor "a": data_offsets: '],
    ['a negative offset', json({ a: entry([1], -4, 0) }), 4, 'tensor "a": data_offsets.0: '],
    ['a negative dimension', json({ a: entry([-1], 0, 4) }), 4, 'tensor "a": shape.0: '],
    ['a fractional dimension', json({ a: entry([0.5], 0, 2) }), 2, 'tensor "a": shape.0: '],
    ['an unknown dtype', json({ a: entry([1], 0, 4, 'I32') }), 4, 'tensor "a" has dtype "I32"; only F32, F16, BF16'],
    ['an end before the start', json({ a: entry([1], 4, 0) }), 4, 'data_offsets [4,0], outside of the 4 bytes'],
    ['an end past the data', json({ a: entry([2], 0, 8) }), 4, 'data_offsets [0,8], outside of the 4 bytes'],
    ['a shape of another size', json({ a: entry([3], 0, 8) }), 8, 'shape [3] and dtype F32 needs 12 bytes'],
    ['a shape beyond numbers', json({ a: entry([2 ** 40, 2 ** 40], 0, 8) }), 8, 'needs 4.8'],
    [
      'overlapping tensors',
      json({ a: entry([2], 0, 8), b: entry([2], 4, 12) }),
      12,
      'tensor "a" and tensor "b" overlap',
    ],
    ['a hole', json({ a: entry([1], 0, 4), b: entry([1], 8, 12) }), 12, 'the 4 bytes before tensor "b" belong to no'],
    ['bytes at the end', json({ a: entry([1], 0, 4) }), 6, 'the last 2 bytes belong to no tensor'],
    ['metadata of another kind', json({ __metadata__: { a: 1 } }), 0, '__metadata__ is not a map of strings'],
  ])('with %s is refused', (_, header, dataBytes, message) => {
    const file = fileWith(header, dataBytes);
    expect(() => new SafetensorsFile(file)).toThrow(message);
    expect(() => new SafetensorsFile(file)).toThrow(file);
  });

  it('with a header that is not UTF-8 is refused', () => {
    expect(() => new SafetensorsFile(fileWith(Uint8Array.of(0x7b, 0xff, 0x7d), 0))).toThrow('the header is not JSON');
  });

  it.each([3n, 1_000n, 2n ** 40n, 2n ** 64n - 1n])('with a header said to have %s bytes is refused', length => {
    expect(() => new SafetensorsFile(fileWith('{}', 0, length))).toThrow(`the header claims ${Number(length)} bytes`);
  });

  it('that is shorter than its prefix is refused', () => {
    writeFileSync(path(), Uint8Array.of(1, 2, 3));
    expect(() => new SafetensorsFile(path())).toThrow('ends at byte 3, 5 bytes early');
  });

  it('is read or refused by name, whatever was done to it', async () => {
    const names = ['a', 'b', 'c'];
    await writeSafetensors(
      path(),
      names.map((name, i) => ({ name, shape: [i + 1, 2], data: new Float32Array(2 * i + 2).fill(i) })),
    );
    const whole = readFileSync(path());
    const edit = fc.record({ at: fc.nat(whole.length - 1), byte: fc.integer({ min: 0, max: 255 }), cut: fc.nat(3) });
    let refused = 0;
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), fc.nat(20), (edits, truncate) => {
        let bytes = Buffer.from(whole);
        for (const { at, byte, cut } of edits) {
          const keep = Math.min(at, bytes.length);
          bytes = Buffer.concat([bytes.subarray(0, keep), Buffer.of(byte), bytes.subarray(keep + cut)]);
        }
        writeFileSync(path(), truncate === 0 ? bytes.subarray(0, bytes.length >> 1) : bytes);
        try {
          for (const values of Object.values(readAll(path()))) expect(values).toBeInstanceOf(Float32Array);
        } catch (error) {
          refused++;
          expect((error as Error).message).toMatch(new RegExp(`^${path()}: .*; `, 's'));
        }
      }),
      { numRuns: 1000, seed: 1 },
    );
    expect(refused).toBeGreaterThan(500);
  });
});
