import { expect, it } from 'vitest';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { histogram, markedText, showExamples } from './dry-run.ts';

const renderer = byteRenderer();
const sequence = {
  tokens: renderer.encode('Q:Ade<|im_end|>F'),
  predict: Uint8Array.from([0, 0, 1, 1, 0, 1, 0]),
};

it('marks every predicted span, in colour on a terminal', () => {
  expect(markedText(sequence, renderer, false)).toBe('Q:[[Ad]]e[[<|im_end|>]]F');
  expect(markedText(sequence, renderer, true)).toBe('Q:\u001b[32mAd\u001b[0me\u001b[32m<|im_end|>\u001b[0mF');
});

it('puts lengths into ranges that end at powers of two', () => {
  expect(histogram([1, 2, 3, 4, 5, 8, 9])).toEqual([
    ['0 to 1', '1', '###############'],
    ['2 to 2', '1', '###############'],
    ['3 to 4', '2', '#'.repeat(30)],
    ['5 to 8', '2', '#'.repeat(30)],
    ['9 to 16', '1', '###############'],
  ]);
});

it('shows the first examples and counts all of them', () => {
  const written: string[] = [];
  const stream = { write: (text: string) => written.push(text) };
  const examples = [1, 2, 3].map(() => [{ name: 'chosen', sequence }]);
  showExamples(examples, { codec: renderer, malformed: 5, samples: 2, marks: 'trained tokens' }, stream);
  const text = written.join('');
  expect(text.match(/^example \d/gm)).toHaveLength(2);
  expect(text).toMatch(/tokens +21\ntrained tokens +9\nlongest +7\nmalformed +5\n/);
});
