import { describe, expect, it } from 'vitest';
import { renameColumns } from './renaming.ts';

describe('renameColumns', () => {
  it('moves columns, copies what it leads to, and leaves the others', () => {
    const rename = renameColumns({ id: 'nr', label: 'answers.text.0', input: 'q', twice: 'q' });
    expect(rename({ nr: 7, q: '1+2', answers: { text: ['3', 'three'] }, other: null })).toEqual({
      id: '7',
      input: '1+2',
      twice: '1+2',
      label: '3',
      answers: { text: ['3', 'three'] },
      other: null,
    });
  });

  it('exchanges names, and takes the place of a column of the same name', () => {
    expect(renameColumns({ a: 'b', b: 'a' })({ a: 1, b: 2 })).toEqual({ a: 2, b: 1 });
    expect(renameColumns({ a: 'b' })({ a: 1, b: 2 })).toEqual({ a: 2 });
    expect(renameColumns({ id: 'id' })({ id: 4 })).toEqual({ id: '4' });
  });

  it('without names gives the row itself, whatever it is', () => {
    expect(renameColumns({})(7)).toBe(7);
  });

  it.each([
    [{ a: 'c' }, { b: 1, d: 2 }, /no column "c" \(data\.column_mapping makes it "a"\); this row has b, d$/],
    [{ a: 'b.c' }, { b: 1 }, /no column "b\.c" .*; this row has b$/],
    [{ id: 'b' }, { b: null }, /column "b" must be text or a number to be "id" \(data\.column_mapping\), got null/],
    [{ a: 'b' }, [1], /expected a JSON object, got \[1\]/],
  ])('names what is missing: %j of %j', (mapping, row, message) => {
    expect(() => renameColumns(mapping)(row)).toThrow(message);
  });
});
