import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/**
 * Records of a `.wandb` file as protocol buffers. Field numbers:
 * https://github.com/wandb/wandb/blob/main/wandb/proto/wandb_internal.proto, whose records are kept readable for later clients.
 */
export interface RunRecord {
  readonly id: string;
  readonly project: string;
  readonly entity?: string | undefined;
  readonly group?: string | undefined;
  readonly displayName?: string | undefined;
  readonly config: Readonly<Record<string, unknown>>;
  /** Milliseconds since 1970. */
  readonly startTime: number;
}

const [HISTORY, SUMMARY, RUN, EXIT, HEADER] = [2, 3, 17, 18, 21];
const NUMBER = 1;

/** `num` counts the records of a file from 1 on. */
export function headerRecord(num: number, version: string): Uint8Array {
  return record(num, HEADER!, writer => nested(writer, 1, info => text(info, 1, `tokenloop ${version}`)));
}

export function runRecord(num: number, run: RunRecord): Uint8Array {
  return record(num, RUN!, writer => {
    text(writer, 1, run.id);
    text(writer, 2, run.entity);
    text(writer, 3, run.project);
    nested(writer, 4, config => {
      for (const [key, value] of Object.entries(run.config)) item(config, 1, key, JSON.stringify(value));
    });
    text(writer, 6, run.group);
    text(writer, 8, run.displayName);
    nested(writer, 17, time => {
      time.tag(1, WireType.Varint).int64(Math.floor(run.startTime / 1000));
      time.tag(2, WireType.Varint).int32((run.startTime % 1000) * 1_000_000);
    });
  });
}

/** `values` are JSON texts by name. */
export function historyRecord(num: number, step: number, values: Readonly<Record<string, string>>): Uint8Array {
  return record(num, HISTORY!, writer => {
    for (const [key, json] of Object.entries(values)) item(writer, 1, key, json);
    nested(writer, 2, stepped => stepped.tag(1, WireType.Varint).int64(step));
  });
}

export function summaryRecord(num: number, values: Readonly<Record<string, string>>): Uint8Array {
  return record(num, SUMMARY!, writer => {
    for (const [key, json] of Object.entries(values)) item(writer, 1, key, json);
  });
}

export function exitRecord(num: number, exitCode: number): Uint8Array {
  return record(num, EXIT!, writer => writer.tag(1, WireType.Varint).int32(exitCode));
}

/** What continuing a file needs to know of a record: its number, and its step if it is one of history. */
export function readRecord(bytes: Uint8Array): {
  readonly num: number;
  readonly step?: number;
  readonly exit: boolean;
} {
  const reader = new BinaryReader(bytes);
  let num = 0;
  let step: number | undefined;
  let exit = false;
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === NUMBER) num = Number(reader.int64());
    else if (field === HISTORY) step = stepOf(reader.bytes());
    else {
      exit ||= field === EXIT;
      reader.skip(wireType);
    }
  }
  return { num, exit, ...(step === undefined ? {} : { step }) };
}

function stepOf(history: Uint8Array): number {
  const reader = new BinaryReader(history);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field !== 2) {
      reader.skip(wireType);
      continue;
    }
    const step = new BinaryReader(reader.bytes());
    return step.len > 0 && step.tag() ? Number(step.int64()) : 0;
  }
  return 0;
}

function record(num: number, field: number, fill: (writer: BinaryWriter) => void): Uint8Array {
  const writer = new BinaryWriter().tag(NUMBER, WireType.Varint).int64(num);
  nested(writer, field, fill);
  return writer.finish();
}

function nested(writer: BinaryWriter, field: number, fill: (writer: BinaryWriter) => void): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  fill(writer);
  writer.join();
}

function text(writer: BinaryWriter, field: number, value: string | undefined): void {
  if (value !== undefined) writer.tag(field, WireType.LengthDelimited).string(value);
}

function item(writer: BinaryWriter, field: number, key: string, json: string): void {
  nested(writer, field, one => {
    text(one, 1, key);
    text(one, 16, json);
  });
}
