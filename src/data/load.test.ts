import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import Papa from 'papaparse';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { localFiles } from './files.ts';
import { imagesOf } from './images.ts';
import { loadRows } from './load.ts';
import { type MalformedRow, MalformedRows } from './malformed.ts';
import { Spool } from './store.ts';

const TRAIN = { name: 'train', given: false };
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'load-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function file(name: string, content: string | Uint8Array): string {
  const path = join(directory, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, content);
  return path;
}

const load = (path: string, options: { limit?: number; onMalformed?: (row: MalformedRow) => void } = {}) =>
  loadRows(localFiles(path, TRAIN)!.files, { map: row => row as Record<string, unknown>, ...options });

function parquet(rows: readonly { a: string; b: string }[]): Uint8Array {
  const column = (name: 'a' | 'b') => ({ name, data: rows.map(row => row[name]), type: 'STRING' as const });
  return new Uint8Array(parquetWriteBuffer({ columnData: [column('a'), column('b')], rowGroupSize: [3] }));
}

describe('loadRows', () => {
  it('gives the same rows whatever the format, in any order of access', async () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map(one => `x${one}`);
    const rows = fc.array(fc.record({ a: text, b: text }), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(rows, async expected => {
        const lines = expected.map(row => JSON.stringify(row));
        const paths = [
          file('r.jsonl', lines.join('\n')),
          file('l.json', `${lines.join('\r\n\n')}\n`),
          file('r.json', JSON.stringify(expected)),
          file('r.csv', Papa.unparse(expected, { newline: '\n' })),
          file('r.tsv', Papa.unparse(expected, { newline: '\r\n', delimiter: '\t', quotes: true })),
          file('r.parquet', parquet(expected)),
        ];
        for (const path of paths) {
          const loaded = await load(path);
          expect([...loaded], path).toEqual(expected);
          expect(loaded.at(loaded.length - 1), path).toEqual(expected.at(-1));
          expect(loaded.at(loaded.length)).toBeUndefined();
        }
      }),
      { numRuns: 40 },
    );
  });

  it('reads a directory in the order of its paths, the wanted split only', async () => {
    file('d/train-00001-of-00002.jsonl', '{"n":2}');
    file('d/train-00000-of-00002.jsonl', '{"n":1}');
    file('d/test.jsonl', '{"n":3}');
    file('d/README.md', 'no data');
    expect([...(await load(join(directory, 'd')))]).toEqual([{ n: 1 }, { n: 2 }]);
    const test = localFiles(join(directory, 'd'), { name: 'test', given: true })!;
    expect(test.files.map(({ label }) => label)).toEqual(['test.jsonl']);
    expect(() => localFiles(join(directory, 'd'), { name: 'dev', given: true })).toThrow(/no file of the split "dev"/);
    expect([...(await load(join(directory, 'd'), { limit: 1 }))]).toEqual([{ n: 1 }]);
  });

  it('names file, row and reason of what cannot be used', async () => {
    const skipped: MalformedRow[] = [];
    const onMalformed = (row: MalformedRow) => skipped.push(row);
    await load(file('a.jsonl', '{"x":1}\n\n{"x"\n'), { onMalformed });
    await load(file('b.csv', 'x,y\n1,2\n3\n'), { onMalformed });
    await load(file('c.jsonl', Buffer.from([0x7b, 0xff, 0x7d, 0x0a, 0x31])), { onMalformed });
    expect(skipped.map(({ line, unit, reason }) => `${unit} ${line}: ${reason}`)).toEqual([
      expect.stringMatching(/^line 3: not JSON/),
      'row 2: has 1 cells, and the header has 2 (x, y)',
      expect.stringMatching(/^line 1: not JSON \(.*not valid/),
    ]);
    await expect(load(file('d.csv', 'x,y\n1\n'))).rejects.toThrow(/d\.csv, row 1: has 1 cells.*data\.on_malformed/);
  });

  it('names files that cannot be read at all', async () => {
    await expect(load(file('a.json', '[1,'))).rejects.toThrow(/a\.json: not JSON/);
    await expect(load(file('a.parquet', 'PAR0'))).rejects.toThrow(/a\.parquet: not a Parquet file/);
    await expect(load(file('a.csv', 'x,x\n1,2\n'))).rejects.toThrow(/names the column "x" twice/);
    await expect(load(file('b.csv', Buffer.from([0x78, 0x0a, 0xff, 0xfe])))).rejects.toThrow(/b\.csv: not UTF-8/);
    await expect(load(file('b.jsonl', '\n'))).rejects.toThrow(/b\.jsonl: no rows in it/);
    expect(() => localFiles(file('e/readme.txt', 'x').replace('/readme.txt', ''), TRAIN)).toThrow(/no \.jsonl/);
  });

  it('refuses a compression that it cannot undo, before any row', async () => {
    const columnData = [{ name: 'text', data: ['a', 'b'], type: 'STRING' as const }];
    const written = parquetWriteBuffer({ columnData, codec: 'LZO', compressors: { LZO: bytes => bytes } });
    const path = file('lzo.parquet', new Uint8Array(written));
    await expect(load(path)).rejects.toThrow(/lzo\.parquet: column "text" is compressed with LZO; .*ZSTD/);
  });

  it('says how many rows are malformed, and why the first is, when none can be used', async () => {
    const onMalformed = () => undefined;
    await expect(load(file('a.jsonl', '\nx\n[1\n'), { onMalformed })).rejects.toThrow(
      /a\.jsonl: no row can be used, all 2 rows are malformed\. The first, .*a\.jsonl:2: not JSON/,
    );
    await expect(load(file('a.csv', 'x,y\n1\n'), { onMalformed })).rejects.toThrow(
      /the only row is malformed\. The first, .*a\.csv, row 1: has 1 cells/,
    );
    file('d/train-0.jsonl', '');
    file('d/train-1.jsonl', 'x\n');
    await expect(load(join(directory, 'd'), { onMalformed })).rejects.toThrow(/train-1\.jsonl: no row can be used/);
  });

  it('asks of every row at the start whether it can be used', async () => {
    const { files } = localFiles(file('a.jsonl', '{"x":1}\n{"x":2}\n'), TRAIN)!;
    const map = (row: unknown) => {
      if ((row as { x: number }).x === 2) throw new Error('two');
    };
    await expect(loadRows(files, { map })).rejects.toThrow(/a\.jsonl:2: two\. Mend the row/);
  });

  it('refuses a file that changed while it was in use', async () => {
    const rows = await load(file('a.jsonl', '{"x":1}\n'));
    file('a.jsonl', '{"x":12}\n');
    expect(() => rows.at(0)).toThrow(/a\.jsonl was changed/);
  });

  it('refuses when too many rows cannot be used, and shows the first', async () => {
    const rows = new MalformedRows(2);
    const path = file('a.jsonl', '1\nx\ny\nz\n');
    await expect(load(path, { onMalformed: row => rows.add(row) })).rejects.toThrow(
      /more than 2 rows .*data\.max_malformed.*\n {2}.*a\.jsonl:2: not JSON.*\n.*:3: .*\n.*:4: /,
    );
  });
});

it('a spool gives back what was put in, in memory and from its file', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 30 }), { minLength: 1 }), fc.nat(100), (pieces, memory) => {
      const spool = new Spool(memory);
      const starts = pieces.map(piece => spool.append(Buffer.from(piece)));
      pieces.forEach((piece, i) => {
        expect([...spool.read(starts[i]!, piece.length)]).toEqual([...piece]);
      });
    }),
    { numRuns: 50 },
  );
});

describe('imagesOf', () => {
  const png = Buffer.from('89504e470d0a1a0a00000000'.padEnd(120, '0'), 'hex');
  it('reads paths, base64, data URLs and stored bytes', () => {
    const rows = file('rows.jsonl', '');
    file('pictures/a.png', png);
    const base64 = png.toString('base64');
    const given = ['pictures/a.png', base64, `data:image/png;base64,${base64}`, { bytes: base64, path: 'gone.png' }];
    for (const image of imagesOf([...given, { bytes: null, path: 'pictures/a.png' }], rows)) {
      expect(image.mediaType).toBe('image/png');
      expect(Buffer.from(image.data).equals(png)).toBe(true);
    }
    expect(imagesOf(null, rows)).toEqual([]);
    expect(imagesOf('pictures/a.png', rows)).toHaveLength(1);
  });
  it.each([
    ['none.png', /image 1: ENOENT.*none\.png/],
    [7, /image 1: expected a path, base64 or \{bytes, path\}, got 7/],
    [{ bytes: 'AAAA' }, /its bytes is no PNG/],
    ['https://host/a.png', /is an address; fetch it/],
  ])('refuses %s', (value, message) => {
    expect(() => imagesOf(value, file('rows.jsonl', ''))).toThrow(message);
  });
});
