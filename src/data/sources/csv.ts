import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import Papa from 'papaparse';
import { messageOf } from '../../episode/failure.ts';
import type { RawRow } from './source.ts';

/** Comma-separated values with a header: every column is text. `.tsv` is separated by tabs. */
export async function* csvRows(path: string): AsyncGenerator<readonly RawRow[]> {
  let header: readonly string[] | undefined;
  let number = 0;
  for await (const { data, errors } of parsed(path)) {
    const faults = new Map(errors.map(({ row, message }) => [row ?? 0, message]));
    const rows: RawRow[] = [];
    for (const [i, cells] of data.entries()) {
      if (header === undefined) {
        header = headerOf(cells, path);
        continue;
      }
      number += 1;
      const fault = faults.get(i) ?? lengthFault(cells, header);
      rows.push(
        fault === undefined
          ? { number, value: Object.fromEntries(header.map((name, column) => [name, cells[column]!])) }
          : { number, fault },
      );
    }
    yield rows;
  }
}

type Parsed = Papa.ParseResult<string[]>;

function parsed(path: string): AsyncIterable<Parsed> {
  let resume: (() => void) | undefined;
  let stopped = false;
  return new ReadableStream<Parsed>({
    start(controller) {
      const input = Readable.from(textOf(path), { objectMode: false, encoding: 'utf8' });
      Papa.parse<string[]>(input, {
        delimiter: /\.tsv$/i.test(path) ? '\t' : ',',
        skipEmptyLines: 'greedy',
        chunk(results, parser) {
          if (stopped) return parser.abort();
          controller.enqueue(results);
          if ((controller.desiredSize ?? 0) > 0) return;
          parser.pause();
          resume = () => parser.resume();
        },
        complete: () => stopped || controller.close(),
        error: error => controller.error(error),
      });
    },
    pull: () => resume?.(),
    cancel() {
      stopped = true;
      resume?.();
    },
  }) as unknown as AsyncIterable<Parsed>;
}

async function* textOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      yield decoder.decode(chunk, { stream: true });
      bytes += chunk.length;
    }
    yield decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new Error(`${path}: not UTF-8 behind byte ${bytes} (${messageOf(error)}); save it as UTF-8`, {
      cause: error,
    });
  }
}

function headerOf(cells: readonly string[], path: string): readonly string[] {
  const twice = cells.find((name, i) => cells.indexOf(name) !== i);
  if (twice !== undefined) throw new Error(`${path}: its header names the column "${twice}" twice; rename one`);
  return cells;
}

function lengthFault(cells: readonly string[], header: readonly string[]): string | undefined {
  if (cells.length === header.length) return undefined;
  return `has ${cells.length} cells, and the header has ${header.length} (${header.join(', ')})`;
}
