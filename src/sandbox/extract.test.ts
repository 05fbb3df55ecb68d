import { expect, it } from 'vitest';
import { programOf } from './extract.ts';

it.each([
  ['x = 1', 'x = 1'],
  ['So:\n```python\nx = 1\n```\nDone.', 'x = 1'],
  ['```\na\n```\n```\nb\n```', 'b'],
  ['```py\na\n```\nwhich prints\n```\n3\n```', 'a'],
  ['```python\na\n```\nno:\n```python\nb\n```', 'b'],
  ['```python\ncut', 'cut'],
  ['```python\n```', ''],
  ['', ''],
])('the program of %j is %j', (answer, program) => expect(programOf(answer, 'python')).toBe(program));

it('takes an answer of 10 MB', () => {
  expect(programOf('```\n'.repeat(2_500_000), 'javascript')).toBe('');
});
