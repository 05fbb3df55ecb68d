import type { LearnerSequence } from '../engines/contracts.ts';
import type { TextCodec } from '../text/renderer.ts';
import type { ConsoleStream } from '../tracking/console.ts';
import { table } from './table.ts';

/** What a dry run shows of an example: each part (an answer, a sequence) under its name. */
export interface ShownPart {
  readonly name: string;
  readonly sequence: LearnerSequence;
}

export interface DryRunOptions {
  readonly codec: Pick<TextCodec, 'decode'>;
  /** Rows that were left out. */
  readonly malformed: number;
  /** Examples that are shown in full, from the beginning of the data. */
  readonly samples: number;
  /** What the marked tokens are: trained, or of an answer; without it none are. */
  readonly marks?: string | undefined;
}

const [COLOUR, PLAIN] = ['\u001b[32m', '\u001b[0m'];
const IDS_SHOWN = 48;

/**
 * Writes the first examples as the model sees them, marked tokens in green on a terminal and in [[ ]] elsewhere, then
 * counts and the lengths of all of them.
 */
export function showExamples(
  examples: Iterable<readonly ShownPart[]>,
  { codec, malformed, samples, marks }: DryRunOptions,
  stream: Pick<ConsoleStream, 'write' | 'color'>,
): void {
  const lengths: number[] = [];
  let [count, tokens, marked] = [0, 0, 0];
  for (const parts of examples) {
    count += 1;
    for (const { name, sequence } of parts) {
      const own = sequence.predict.reduce((sum, flag) => sum + flag, 0);
      lengths.push(sequence.tokens.length);
      tokens += sequence.tokens.length;
      marked += own;
      if (count > samples) continue;
      const title = `example ${count}${name === '' ? '' : `, ${name}`}: ${sequence.tokens.length} tokens${marks ? `, ${own} ${marks}` : ''}`;
      const text = markedText(sequence, codec, stream.color === true);
      stream.write(`${title}\n${text}\nids ${idsOf(sequence.tokens)}\n\n`);
    }
  }
  const rows = [
    ['data', 'count'],
    ['examples', String(count)],
    ['sequences', String(lengths.length)],
    ['tokens', String(tokens)],
    ...(marks ? [[marks, String(marked)]] : []),
    ['longest', String(lengths.reduce((a, b) => Math.max(a, b), 0))],
    ['malformed', String(malformed)],
  ];
  const ranges = [['tokens', 'sequences', ''], ...histogram(lengths)];
  stream.write(`${table(rows)}\n\n${table(ranges)}\n`);
}

/** The text of the tokens, special ones included, with the predicted spans marked. */
export function markedText(
  { tokens, predict }: LearnerSequence,
  codec: Pick<TextCodec, 'decode'>,
  colour: boolean,
): string {
  const [open, close] = colour ? [COLOUR, PLAIN] : ['[[', ']]'];
  let text = '';
  for (let start = 0, end = 0; start < tokens.length; start = end) {
    while (end < tokens.length && predict[end] === predict[start]) end += 1;
    const span = codec.decode(tokens.subarray(start, end), { special: true });
    text += predict[start] === 1 ? `${open}${span}${close}` : span;
  }
  return text;
}

/** How many lengths lie in each range that ends at a power of two, with a bar. */
export function histogram(lengths: readonly number[]): string[][] {
  const counts = new Map<number, number>();
  for (const length of lengths) {
    const bin = Math.max(0, Math.ceil(Math.log2(length)));
    counts.set(bin, (counts.get(bin) ?? 0) + 1);
  }
  const most = Math.max(...counts.values(), 1);
  const bins = [...counts.keys()].sort((a, b) => a - b);
  return bins.map(bin => {
    const count = counts.get(bin)!;
    const from = bin === 0 ? 0 : 2 ** (bin - 1) + 1;
    return [`${from} to ${2 ** bin}`, String(count), '#'.repeat(Math.ceil((30 * count) / most))];
  });
}

function idsOf(tokens: Int32Array): string {
  const left = tokens.length - IDS_SHOWN;
  return `${[...tokens.subarray(0, IDS_SHOWN)].join(' ')}${left > 0 ? ` … ${left} more` : ''}`;
}
