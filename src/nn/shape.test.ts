import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addDims, broadcastShapes, canonical, divDim, evalDim, mulDims, sizeOf, subDims } from './shape.ts';

describe('dimensions', () => {
  it('have one spelling', () => {
    expect(canonical(['T*B', 'B*4*T', '1+L', 'T-T', '2*3', 'b*a+a*b', 'L-1-M'])).toEqual([
      'B*T',
      '4*B*T',
      'L+1',
      0,
      6,
      '2*a*b',
      'L-M-1',
    ]);
    expect(mulDims('T', 4, 'B')).toBe('4*B*T');
    expect(mulDims()).toBe(1);
    expect(mulDims('L+1', 'L-1')).toBe('L*L-1');
    expect(addDims('T', 'T', 1)).toBe('2*T+1');
    expect(subDims('T', 'T')).toBe(0);
    expect(sizeOf(['N', 8, 'N'])).toBe('8*N*N');
    for (const text of ['', 'N+', '*N', '2N', 'a b', 'N/2', '--N']) {
      expect(() => canonical([text])).toThrow(/is not a dimension/);
    }
    expect(() => canonical([1.5])).toThrow('dimension 1.5 is not an integer');
  });

  it('divide exactly or not at all', () => {
    expect(divDim('4*B*T', '2*B')).toBe('2*T');
    expect(divDim('2*T+4', 2)).toBe('T+2');
    expect(divDim(12, 4)).toBe(3);
    expect(() => divDim('3*N', 2)).toThrow('dimension 3*N is not divisible by 2');
    expect(() => divDim('N', 'M')).toThrow('dimension N is not divisible by M');
    expect(() => divDim('N', 'N+1')).toThrow('cannot divide dimension N by N+1');
  });

  it('stand for numbers', () => {
    expect(evalDim('4*B*T+L-1', { B: 2, T: 3, L: 5 })).toBe(28);
    expect(() => evalDim('B*T', { B: 2 })).toThrow('symbol T has no value (bound: B)');
    expect(() => evalDim('T-2', { T: 1 })).toThrow('dimension T-2 is negative (-1) with {"T":1}');
  });

  it('calculate as the numbers do', () => {
    const dim = fc
      .array(fc.tuple(fc.integer({ min: -3, max: 3 }), fc.array(fc.constantFrom('A', 'B', 'C'), { maxLength: 3 })), {
        maxLength: 4,
      })
      .map(terms => addDims(0, ...terms.map(([c, symbols]) => mulDims(c, ...symbols))));
    const value = fc.integer({ min: 1, max: 9 });
    fc.assert(
      fc.property(dim, dim, value, value, value, (a, b, A, B, C) => {
        // A large constant keeps every value positive, as evalDim asks.
        const at = (x: typeof a) => evalDim(addDims(x, 1e9), { A, B, C }) - 1e9;
        expect(at(mulDims(a, b))).toBe(at(a) * at(b) + 0);
        expect(at(addDims(a, b))).toBe(at(a) + at(b) + 0);
        expect(subDims(addDims(a, b), b)).toBe(a);
        expect(canonical([a])).toEqual([a]);
        expect(divDim(mulDims(a, '2*B'), '2*B')).toBe(a);
      }),
    );
  });

  it('broadcast against equals and 1 only', () => {
    expect(broadcastShapes('add', ['N', 1, 4], [3, 1])).toEqual(['N', 3, 4]);
    expect(broadcastShapes('add', [], ['N'])).toEqual(['N']);
    expect(() => broadcastShapes('add', ['N', 2], ['M', 2])).toThrow('add: shapes do not broadcast: [N,2] with [M,2]');
    expect(() => broadcastShapes('add', [4], [3])).toThrow('add: shapes do not broadcast: [4] with [3]');
    expect(() => broadcastShapes('add', ['N'], [3])).toThrow('[N] with [3]');
  });
});
