import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModel } from '../../../tests/support/engines.ts';
import { goldenModel } from '../../../tests/support/goldens.ts';
import { openCheckpoint } from '../../nn/checkpoint/directory.ts';
import { rotaryTables } from '../../nn/models/rope.ts';
import { Model } from './model.ts';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-model-'));
});
afterAll(() => rmSync(root, { recursive: true }));

describe('Model', () => {
  it('opens a checkpoint, and does not replace its weights by a seed', () => {
    const { weights } = openCheckpoint(goldenModel('qwen2'));
    expect(new Model(goldenModel('qwen2'), 1).weights).toEqual(weights);
    expect(new Model(goldenModel('full-untied-sharded'), 1).weights).toEqual(
      openCheckpoint(goldenModel('full-untied-sharded')).weights,
    );
  });

  it('draws weights by the seed where there are none, and only then', () => {
    const directory = tinyModel(root);
    const { weights } = new Model(directory, 5);
    expect(new Model(directory, 5).weights).toEqual(weights);
    expect(new Model(directory, 6).weights).not.toEqual(weights);
    expect(() => new Model(directory)).toThrow(directory);
  });

  it.each(['checkpoint', 'seed'])('keeps a reference of what it started from (%s)', from => {
    const model = from === 'seed' ? new Model(tinyModel(root), 5) : new Model(goldenModel('mistral'));
    const before = model.weights.slice();
    model.weights.fill(0);
    expect(model.reference()).toEqual(before);
    expect(model.reference()).toBe(model.reference());
  });

  it('shows parameters as views of one array, the same each time', () => {
    const model = new Model(goldenModel('mistral'));
    const views = model.views(model.weights);
    expect(Object.keys(views)).toEqual(model.layout.map(({ name }) => name));
    model.weights[model.layout[1]!.offset] = 42;
    expect(views[model.layout[1]!.name]![0]).toBe(42);
    expect(model.views(model.weights)).toBe(views);
  });

  it('gives rotary tables of at least the length asked for, up to the window', () => {
    const model = new Model(goldenModel('mistral'));
    const { config } = model;
    const half = config.headDim / 2;
    const [rope] = config.ropes;
    for (const length of [1, 10, config.maxPositions]) {
      const [{ cos, sin }] = model.rotary(length) as [ReturnType<typeof rotaryTables>];
      const expected = rotaryTables(rope!, length);
      expect(cos.subarray(0, length * half)).toEqual(expected.cos);
      expect(sin.subarray(0, length * half)).toEqual(expected.sin);
    }
    expect(model.rotary(1)[0]!.cos).toHaveLength(config.maxPositions * half);
  });
});
