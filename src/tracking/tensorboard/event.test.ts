import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32c, maskedCrc32c } from './crc32c.ts';
import { type Event, encodeEvent, stepOf } from './event.ts';
import { frame, records } from './records.ts';

const golden = readFileSync(new URL('../../../tests/goldens/tensorboard/torch.tfevents', import.meta.url));

describe('encodeEvent', () => {
  it("writes, byte by byte, what torch's SummaryWriter writes (tools/golden/event_files.py)", () => {
    const moments = { min: 1, max: 3, sum: 8, sumSquares: 18 };
    const events: Event[] = [
      { wallTime: 1700000000.5, step: 1, values: [{ tag: 'train/reward', scalar: 0.25 }] },
      { wallTime: 1700000000.5, step: 1, values: [{ tag: 'train/kl', scalar: -1e-7 }] },
      { wallTime: 1700000001, step: 300, values: [{ tag: 'train/loss', scalar: Number.NaN }] },
      {
        wallTime: 1700000002,
        step: 2,
        values: [{ tag: 'train/turns', histogram: { edges: [1, 2, 3], counts: [1, 3], ...moments } }],
      },
      { wallTime: 1700000003, step: 2, values: [{ tag: 'sample/text_summary', text: '**a**: é\n' }] },
    ];
    // The first record tells the time at which it was written.
    const [first, ...written] = [...records(golden)].map(({ payload }) => Buffer.from(payload).toString('hex'));
    expect(written).toEqual(events.map(event => Buffer.from(encodeEvent(event)).toString('hex')));
    expect(first).toContain(Buffer.from('brain.Event:2').toString('hex'));
    expect(Buffer.concat([...records(golden)].map(({ payload }) => frame(payload)))).toEqual(golden);
  });

  it('tells the step of what it wrote', () => {
    const given = fc.record({ wallTime: fc.double(), step: fc.integer({ min: 0, max: 2 ** 40 }) });
    fc.assert(fc.property(given, event => stepOf(encodeEvent(event)) === event.step));
    expect(stepOf(encodeEvent({ wallTime: 1, fileVersion: 'brain.Event:2' }))).toBe(0);
  });
});

describe('records', () => {
  const file = Buffer.concat([frame(Buffer.from('one')), frame(Buffer.from('two'))]);
  const read = (bytes: Uint8Array) => [...records(bytes)].map(({ payload }) => Buffer.from(payload).toString());

  it('ends where the file was cut short, wherever that is', () => {
    for (let length = 0; length < file.length; length++) {
      expect(read(file.subarray(0, length))).toEqual(length < 19 ? [] : ['one']);
    }
    expect(read(file)).toEqual(['one', 'two']);
  });

  it('ends before a damaged record, whichever byte it is', () => {
    for (let at = 19; at < file.length; at++) {
      const damaged = Buffer.from(file);
      damaged[at]! ^= 1;
      expect(read(damaged)).toEqual(['one']);
    }
  });
});

it('computes checksums', () => {
  // https://reveng.sourceforge.io/crc-catalogue/17plus.htm#crc.cat.crc-32-iscsi
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
  expect(maskedCrc32c(new Uint8Array(0))).toBe(0xa282ead8);
});
