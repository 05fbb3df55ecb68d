import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PythonRandom } from './python-random.ts';

interface Draws {
  readonly seed: string;
  readonly random: number[];
  readonly randint: [number, number, number][];
  readonly randrange: [number, number][];
  readonly choice: string[];
  readonly shuffled: number[];
  readonly sample: [number, number, number[]][];
  readonly last: number[];
}

const file = new URL('../../../../tests/goldens/games/random.json', import.meta.url);
const goldens = JSON.parse(readFileSync(file, 'utf8')) as Draws[];

describe('PythonRandom', () => {
  it.each(goldens)('draws as Python does from seed $seed', golden => {
    const random = new PythonRandom(BigInt(golden.seed));
    const items = Array.from({ length: 50 }, (_, i) => i);
    const shuffled = items.slice(0, 13);
    random.shuffle(shuffled);
    expect(shuffled).toEqual(golden.shuffled);
    expect(golden.random.map(() => random.random())).toEqual(golden.random);
    for (const [low, high, drawn] of golden.randint) expect(random.randint(low, high)).toBe(drawn);
    for (const [n, drawn] of golden.randrange) expect(random.below(n)).toBe(drawn);
    expect(golden.choice.map(() => random.choice('abcdefg'))).toEqual(golden.choice);
    for (const [n, k, drawn] of golden.sample) expect(random.sample(items.slice(0, n), k)).toEqual(drawn);
    expect(Array.from({ length: 700 }, () => random.random()).slice(-3)).toEqual(golden.last);
  });

  it('takes a number for a seed, and refuses what it cannot draw', () => {
    expect(new PythonRandom(42).random()).toBe(new PythonRandom(42n).random());
    expect(() => new PythonRandom(0.5)).toThrow('the seed 0.5 is no integer');
    expect(() => new PythonRandom(1).choice([])).toThrow('cannot draw below 0');
    expect(() => new PythonRandom(1).sample([1, 2], 3)).toThrow('cannot draw 3 different items of 2');
  });
});
