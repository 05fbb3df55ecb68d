import { crc32 } from 'node:zlib';

/**
 * The log format of LevelDB with W&B's header: blocks of 32 KiB, in them pieces of records with a header of 7 bytes each:
 * CRC-32 of type and data (uint32), length (uint16), type; little-endian. No piece begins in the last 6 bytes of a block.
 * Sources: https://github.com/google/leveldb/blob/main/doc/log_format.md,
 * https://github.com/wandb/wandb/blob/main/core/pkg/leveldb/record.go (identifier, and the plain CRC-32).
 */
const BLOCK = 32 * 1024;
const PIECE_HEADER = 7;
const [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4];
/** `:W&B`, 0xbee1, version 0. */
export const LOG_HEADER = Uint8Array.of(0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0);

/** The bytes that add a record to a log of `length` bytes. */
export function appendRecord(length: number, record: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  let at = length % BLOCK;
  let begun = false;
  for (let rest = record; !begun || rest.length > 0; ) {
    if (BLOCK - at < PIECE_HEADER) {
      parts.push(new Uint8Array(BLOCK - at));
      at = 0;
    }
    const data = rest.subarray(0, BLOCK - at - PIECE_HEADER);
    rest = rest.subarray(data.length);
    const type = rest.length > 0 ? (begun ? MIDDLE : FIRST) : begun ? LAST : FULL;
    parts.push(piece(type!, data));
    at = (at + PIECE_HEADER + data.length) % BLOCK;
    begun = true;
  }
  return Buffer.concat(parts);
}

function piece(type: number, data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(PIECE_HEADER + data.length);
  bytes[6] = type;
  bytes.set(data, PIECE_HEADER);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, crc32(bytes.subarray(6)), true);
  view.setUint16(4, data.length, true);
  return bytes;
}

/** The whole records of a log, each with the offset behind it, up to the first that is cut short or damaged. */
export function* logRecords(log: Uint8Array): Generator<{ readonly record: Uint8Array; readonly end: number }> {
  let pieces: Uint8Array[] = [];
  for (let at = LOG_HEADER.length; at + PIECE_HEADER <= log.length; ) {
    const left = BLOCK - (at % BLOCK);
    if (left < PIECE_HEADER) {
      at += left;
      continue;
    }
    const view = new DataView(log.buffer, log.byteOffset + at);
    const end = at + PIECE_HEADER + view.getUint16(4, true);
    if (end > log.length || view.getUint32(0, true) !== crc32(log.subarray(at + 6, end))) return;
    pieces.push(log.subarray(at + PIECE_HEADER, end));
    const type = log[at + 6];
    at = end;
    if (type !== FULL && type !== LAST) continue;
    yield { record: Buffer.concat(pieces), end };
    pieces = [];
  }
}
