import { maskedCrc32c } from './crc32c.ts';

/**
 * TFRecord framing: length (uint64), its masked CRC-32C (uint32), the bytes, their masked CRC-32C; little-endian.
 * Source: https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details.
 */
const HEADER = 12;
const FOOTER = 4;

export function frame(payload: Uint8Array): Uint8Array {
  const record = new Uint8Array(HEADER + payload.length + FOOTER);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(payload.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(payload, HEADER);
  view.setUint32(HEADER + payload.length, maskedCrc32c(payload), true);
  return record;
}

export interface FramedRecord {
  readonly payload: Uint8Array;
  /** Offset behind the record. */
  readonly end: number;
}

/** The whole records of a file, up to the first that is cut short or damaged. */
export function* records(file: Uint8Array): Generator<FramedRecord> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  for (let start = 0; start + HEADER + FOOTER <= file.length; ) {
    const length = Number(view.getBigUint64(start, true));
    const payloadEnd = start + HEADER + length;
    if (view.getUint32(start + 8, true) !== maskedCrc32c(file.subarray(start, start + 8))) return;
    if (payloadEnd + FOOTER > file.length) return;
    const payload = file.subarray(start + HEADER, payloadEnd);
    if (view.getUint32(payloadEnd, true) !== maskedCrc32c(payload)) return;
    start = payloadEnd + FOOTER;
    yield { payload, end: start };
  }
}
