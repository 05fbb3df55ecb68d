import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MalformedRow } from '../data/malformed.ts';
import { DEFAULT_ROW_OPTIONS, readJsonl, rowToTask } from './tasks.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tasks-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function dataset(...lines: readonly string[]): string {
  const path = join(directory, 'sums.jsonl');
  writeFileSync(path, lines.join('\n'));
  return path;
}

describe('readJsonl', () => {
  it('reads prompt, label, id and source of each row', () => {
    const path = dataset(
      '{"input":"1+1","label":2}',
      '',
      '{"input":"2+2","label":"4","id":"x","datasource":"hard"}',
      '',
    );
    expect(readJsonl(path)).toEqual([
      { id: 'sums:1', prompt: '1+1', label: '2', source: 'sums', metadata: { input: '1+1', label: 2 } },
      {
        id: 'x',
        prompt: '2+2',
        label: '4',
        source: 'hard',
        metadata: { input: '2+2', label: '4', id: 'x', datasource: 'hard' },
      },
    ]);
  });

  it('lets a function make the task', () => {
    const path = dataset('{"question":"1+1","answer":2}');
    const tasks = readJsonl<{ question: string; answer: number }>(path, ({ question, answer }) => ({
      prompt: [{ role: 'user', content: question }],
      label: String(answer),
    }));
    expect(tasks[0]).toMatchObject({ prompt: [{ role: 'user', content: '1+1' }], label: '2' });
  });

  it.each([
    ['{"input":"1"', /sums\.jsonl:2: not JSON .*data\.on_malformed/],
    ['[1]', /:2: expected a JSON object, got \[1\]/],
    ['{"question":"1","label":"1"}', /:2: no column "input" \(data\.input_key\); this row has question, label/],
    ['{"input":"1"}', /:2: no column "label" \(data\.label_key; set it to null/],
    ['{"input":7,"label":"1"}', /:2: column "input" must be text or a list of messages .*, got 7/],
    ['{"input":[{"role":"user"}],"label":"1"}', /:2: column "input" must be text or a list of messages/],
    ['{"input":"","label":"1"}', /:2: column "input" must be text/],
    ['{"input":"1","label":{}}', /:2: column "label" must be text, a number or a boolean, got \{\}/],
    ['{"input":"1","label":"1","id":"first"}', /:2: id "first" is already that of line 1/],
  ])('refuses %s, naming file, line and remedy', (row, message) => {
    const path = dataset('{"input":"0","label":"0","id":"first"}', row);
    expect(() => readJsonl(path)).toThrow(message);
  });

  it('hands malformed rows over when asked', () => {
    const path = dataset('nonsense', '{"input":"0","label":"0"}');
    const skipped: MalformedRow[] = [];
    const tasks = readJsonl(
      path,
      row => rowToTask(row, DEFAULT_ROW_OPTIONS),
      row => skipped.push(row),
    );
    expect(tasks).toHaveLength(1);
    expect(skipped).toMatchObject([{ file: path, line: 1 }]);
  });

  it('refuses a missing and an empty file', () => {
    expect(() => readJsonl(join(directory, 'none.jsonl'))).toThrow(/cannot read the dataset .*none\.jsonl/);
    expect(() => readJsonl(dataset(''))).toThrow(/no rows in it/);
  });
});

describe('rowToTask', () => {
  it('fills the template and makes a user message', () => {
    const options = { ...DEFAULT_ROW_OPTIONS, inputTemplate: 'Q: {}\nA:', labelKey: null };
    expect(rowToTask({ input: "$&$'" }, options)).toMatchObject({ prompt: "Q: $&$'\nA:", label: '' });
    expect(rowToTask({ input: 'x' }, { ...options, applyChatTemplate: true }).prompt).toEqual([
      { role: 'user', content: 'Q: x\nA:' },
    ]);
  });
});
