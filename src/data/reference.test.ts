import { expect, it } from 'vitest';
import { parseReference } from './reference.ts';

it.each([
  ['org/set', { name: 'org/set' }],
  ['org/set@v1:main:test', { name: 'org/set', revision: 'v1', config: 'main', split: 'test' }],
  ['org/a.b-c:x.y', { name: 'org/a.b-c', config: 'x.y' }],
  ['gsm8k', { name: 'gsm8k' }],
  [
    'ag_news@refs/convert/parquet:default:train',
    { name: 'ag_news', revision: 'refs/convert/parquet', config: 'default', split: 'train' },
  ],
])('%s is a dataset of the hub', (text, reference) => {
  expect(parseReference(text)).toEqual(reference);
});

it.each(['tasks.jsonl', 'tasks.txt', 'org/tasks.jsonl', './tasks', '/tasks', 'a/b/c', '', 'two words', 'set:', '-x'])(
  '%j is none',
  text => {
    expect(parseReference(text)).toBeUndefined();
  },
);
