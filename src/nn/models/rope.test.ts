import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decoderConfig } from './families.ts';
import { type Rope, rotaryTables } from './rope.ts';

const file = new URL('../../../tests/goldens/rope.json', import.meta.url);
const goldens: Record<string, { config: object; ropes: Rope[] }> = JSON.parse(readFileSync(file, 'utf8'));

describe('readRope', () => {
  it.each(Object.keys(goldens))("has Transformers' frequencies: %s", name => {
    const { config, ropes } = goldens[name]!;
    const found = decoderConfig(config).ropes;
    expect(found).toHaveLength(ropes.length);
    ropes.forEach(({ frequencies, scale }, kind) => {
      expect(found[kind]!.scale).toBeCloseTo(scale, 12);
      expect(found[kind]!.frequencies).toHaveLength(frequencies.length);
      // Transformers computes powers in float32: a few units in the last place.
      frequencies.forEach((frequency, i) => {
        expect(Math.abs(found[kind]!.frequencies[i]! / frequency - 1)).toBeLessThan(1e-6);
      });
    });
  });
});

describe('rotaryTables', () => {
  it('turns by the frequency at each position, and scales', () => {
    const { cos, sin } = rotaryTables({ frequencies: [1, 0.25], scale: 3 }, 3);
    const angles = [0, 0, 1, 0.25, 2, 0.5];
    expect([...cos]).toEqual(angles.map(angle => Math.fround(3 * Math.cos(angle))));
    expect([...sin]).toEqual(angles.map(angle => Math.fround(3 * Math.sin(angle))));
  });

  it('rounds angles to float32 as PyTorch does', () => {
    const position = 99_999;
    const { cos } = rotaryTables({ frequencies: [0.7], scale: 1 }, position + 1);
    const exact = Math.fround(0.7) * position;
    expect(Math.abs(Math.fround(exact) - exact)).toBeGreaterThan(1e-3);
    expect(cos[position]).toBe(Math.fround(Math.cos(Math.fround(exact))));
  });
});
