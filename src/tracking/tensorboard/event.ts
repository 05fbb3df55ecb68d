import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { Histogram } from '../histogram.ts';

/**
 * TensorBoard's events as protocol buffers. Field numbers:
 * https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto and summary.proto, tensor.proto.
 */
export interface Event {
  /** Seconds since 1970. */
  readonly wallTime: number;
  readonly step?: number;
  /** `brain.Event:2` opens every file. */
  readonly fileVersion?: string;
  /** Readers drop what earlier files have from `step` on. */
  readonly start?: boolean;
  readonly values?: readonly SummaryValue[];
}

export type SummaryValue =
  | { readonly tag: string; readonly scalar: number }
  | { readonly tag: string; readonly histogram: Histogram }
  /** Markdown. */
  | { readonly tag: string; readonly text: string };

const DT_STRING = 7;
const SESSION_START = 1;

export function encodeEvent({ wallTime, step, fileVersion, start, values }: Event): Uint8Array {
  const event = new BinaryWriter().tag(1, WireType.Bit64).double(wallTime);
  if (step) event.tag(2, WireType.Varint).int64(step);
  if (fileVersion !== undefined) event.tag(3, WireType.LengthDelimited).string(fileVersion);
  if (values !== undefined) {
    event.tag(5, WireType.LengthDelimited).fork();
    for (const value of values) writeValue(event, value);
    event.join();
  }
  if (start) event.tag(7, WireType.LengthDelimited).fork().tag(1, WireType.Varint).int32(SESSION_START).join();
  return event.finish();
}

function writeValue(event: BinaryWriter, value: SummaryValue): void {
  event.tag(1, WireType.LengthDelimited).fork();
  event.tag(1, WireType.LengthDelimited).string(value.tag);
  if ('scalar' in value) {
    // A float holds no more; TensorBoard shows the two infinities as such.
    event.tag(2, WireType.Bit32).float(Math.fround(value.scalar));
  } else if ('histogram' in value) {
    writeHistogram(event, value.histogram);
  } else {
    event.tag(8, WireType.LengthDelimited).fork();
    event.tag(1, WireType.Varint).int32(DT_STRING);
    event.tag(2, WireType.LengthDelimited).fork();
    event.tag(2, WireType.LengthDelimited).fork().tag(1, WireType.Varint).int64(1).join().join();
    event.tag(8, WireType.LengthDelimited).string(value.text).join();
    event.tag(9, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).fork();
    event.tag(1, WireType.LengthDelimited).string('text').join().join();
  }
  event.join();
}

function writeHistogram(event: BinaryWriter, histogram: Histogram): void {
  const { min, max, counts, sum, sumSquares, edges } = histogram;
  const num = counts.reduce((a, b) => a + b, 0);
  event.tag(5, WireType.LengthDelimited).fork();
  // proto3 leaves out zeros.
  for (const [i, moment] of [min, max, num, sum, sumSquares].entries()) {
    if (moment !== 0) event.tag(i + 1, WireType.Bit64).double(moment);
  }
  for (const [field, numbers] of [
    [6, edges.slice(1)],
    [7, counts],
  ] as const) {
    event.tag(field, WireType.LengthDelimited).fork();
    for (const number of numbers) event.double(number);
    event.join();
  }
  event.join();
}

/** Step of an encoded event; 0 when it says none. */
export function stepOf(payload: Uint8Array): number {
  const reader = new BinaryReader(payload);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 2) return Number(reader.int64());
    reader.skip(wireType);
  }
  return 0;
}
