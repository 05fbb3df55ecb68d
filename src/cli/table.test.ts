import { expect, it } from 'vitest';
import { table } from './table.ts';

it('aligns words to the left and numbers to the right', () => {
  expect(
    table([
      ['', 'before', 'after', 'note'],
      ['accuracy', '37 %', '96 %', 'held out'],
      ['tool use', 5, '100 %', ''],
    ]),
  ).toBe(`          before  after  note
--------  ------  -----  --------
accuracy    37 %   96 %  held out
tool use       5  100 %`);
});

it('takes a heading alone', () => {
  expect(table([['a', 'b']])).toBe('a  b\n-  -');
});
