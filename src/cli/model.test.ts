import { describe, expect, it } from 'vitest';
import { downloadLine } from './model.ts';

const COMMIT = '0123456789'.repeat(4);
const progress = (file: string, done: number, total: number) => ({ commit: COMMIT, file, done, total });

function lineOn(terminal: boolean, columns = 80) {
  const written: string[] = [];
  let time = 0;
  const stream = { write: (text: string) => written.push(text), isTTY: terminal, columns };
  const line = downloadLine('org/small', stream, () => time);
  const show = (at: number, ...report: Parameters<typeof progress>) => {
    time = at;
    line.show(progress(...report));
  };
  return { written, show, end: line.end };
}

describe('the line of a download', () => {
  it('on a terminal changes in place, at most ten times a second', () => {
    const { written, show, end } = lineOn(true);
    show(0, 'a.json', 1000, 3000);
    show(50, 'a.json', 2000, 3000);
    show(110, 'a.json', 2500, 3000);
    show(120, 'a.json', 3000, 3000);
    show(130, 'b.safetensors', 1, 4_000_000_000);
    end();
    expect(written).toEqual([
      `fetching org/small at commit ${COMMIT}\n`,
      '\r\u001b[2Kfetching org/small: 33 % of 3 kB, a.json',
      '\r\u001b[2Kfetching org/small: 83 % of 3 kB, a.json',
      '\r\u001b[2Kfetching org/small: 100 % of 3 kB, a.json',
      '\r\u001b[2Kfetching org/small: 0 % of 4.0 GB, b.safetensors',
      '\n',
    ]);
  });

  it('never wraps', () => {
    const { written, show } = lineOn(true, 12);
    show(0, 'a.json', 1, 2);
    expect(written.at(-1)).toBe('\r\u001b[2Kfetching or');
  });

  it('elsewhere comes once for each file', () => {
    const { written, show, end } = lineOn(false);
    show(0, 'a.json', 0, 3000);
    show(500, 'a.json', 2000, 3000);
    show(900, 'b.json', 2500, 3000);
    end();
    expect(written).toEqual([
      `fetching org/small at commit ${COMMIT}\n`,
      'fetching a.json: 3 kB left\n',
      'fetching b.json: 1 kB left\n',
    ]);
  });

  it('is not there when nothing was fetched', () => {
    const { written, end } = lineOn(true);
    end();
    expect(written).toEqual([]);
  });
});
