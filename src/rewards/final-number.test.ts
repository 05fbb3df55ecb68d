import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { finalNumber } from './final-number.ts';

describe('finalNumber', () => {
  it.each([
    ['so it is\n#### 72', 72],
    ['#### 72\n', 72],
    ['####72', 72],
    ['#### -3', -3],
    ['#### $1,234,567.50', 1234567.5],
    ['#### -$4', -4],
    ['#### $-4', -4],
    ['#### 12.', 12],
    ['#### 12 %', 12],
    ['#### .5', 0.5],
    ['#### 1000', 1000],
    ['#### 3\nThat is all.', 3],
    ['#### 3\n#### 4', 4],
  ])('%j ends with %d', (text, number) => expect(finalNumber(text)).toBe(number));

  it.each(['72', '#### ', '#### about 72', '#### 72 apples', '#### 1,23', '#### 3 or 4', '#### 3\n####', '### 72'])(
    'finds none in %j',
    text => expect(finalNumber(text)).toBeUndefined(),
  );

  it('reads every label of GSM8K as written there', () => {
    const rows = readFileSync(new URL('../../examples/gsm8k/test.jsonl', import.meta.url), 'utf8').trimEnd();
    const labels = rows.split('\n').map(row => (JSON.parse(row) as { label: string }).label);
    expect(labels).toHaveLength(1319);
    for (const label of labels) expect(finalNumber(`#### ${label}`)).toBe(Number(label));
  });
});
