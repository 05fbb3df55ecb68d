import { z } from 'zod';
import { DTYPE_BYTES, type Dtype } from './dtypes.ts';

/** One tensor of a safetensors file; its bytes are [start, end) of the data that follows the header. */
export interface TensorInfo {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

export interface Header {
  readonly tensors: readonly TensorInfo[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** The one key of a header that names no tensor. */
export const METADATA = '__metadata__';

const size = z.int().nonnegative();
const entrySchema = z.object({ dtype: z.string(), shape: z.array(size), data_offsets: z.tuple([size, size]) });
const metadataSchema = z.record(z.string(), z.string());
const DTYPES = Object.keys(DTYPE_BYTES) as Dtype[];

/**
 * Parses and checks the JSON header of a safetensors file: every tensor lies inside the data, has as many bytes as its
 * shape asks for, and together they cover the data without overlap or hole. Throws naming `file` and the tensor.
 *
 * @param dataBytes length of what follows the header
 */
export function parseHeader(bytes: Uint8Array, file: string, dataBytes: number): Header {
  const content = parseJson(bytes, file);
  const { [METADATA]: metadata, ...entries } = content;
  const known = metadataSchema.safeParse(metadata ?? {});
  if (!known.success) throw damaged(file, `${METADATA} is not a map of strings`);
  const tensors = Object.entries(entries).map(([name, entry]) => readEntry(name, entry, file, dataBytes));
  checkCoverage(tensors, file, dataBytes);
  return { tensors, metadata: known.data };
}

function damaged(file: string, message: string, cause?: unknown): Error {
  return new Error(`${file}: ${message}; the file is damaged: fetch or write it again`, { cause });
}

function parseJson(bytes: Uint8Array, file: string): Record<string, unknown> {
  let text: string;
  let content: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    content = JSON.parse(text);
  } catch (error) {
    throw damaged(file, `the header is not JSON (${(error as Error).message})`, error);
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw damaged(file, 'the header is not a JSON object');
  }
  const twice = duplicateKey(text);
  if (twice !== undefined) throw damaged(file, `the header names ${JSON.stringify(twice)} twice`);
  return content as Record<string, unknown>;
}

/** The first key that some object of a valid JSON text holds twice; JSON.parse would silently keep the last. */
function duplicateKey(text: string): string | undefined {
  const scopes: Set<string>[] = [];
  for (const [lexeme, key] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (lexeme === '{') scopes.push(new Set());
    else if (lexeme === '}') scopes.pop();
    else if (key !== undefined) {
      const name = JSON.parse(key) as string;
      const scope = scopes.at(-1)!;
      if (scope.has(name)) return name;
      scope.add(name);
    }
  }
  return undefined;
}

function readEntry(name: string, entry: unknown, file: string, dataBytes: number): TensorInfo {
  const tensor = `tensor ${JSON.stringify(name)}`;
  const parsed = entrySchema.safeParse(entry);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    throw damaged(file, `${tensor}: ${path.join('.') || 'its entry'}: ${message}, found ${JSON.stringify(entry)}`);
  }
  const { shape, data_offsets: offsets } = parsed.data;
  const dtype = DTYPES.find(known => known === parsed.data.dtype);
  if (dtype === undefined) {
    throw new Error(
      `${file}: ${tensor} has dtype ${JSON.stringify(parsed.data.dtype)}; only ${DTYPES.join(', ')} are read: convert the checkpoint to one of them`,
    );
  }
  const [start, end] = offsets;
  if (start > end || end > dataBytes) {
    throw damaged(file, `${tensor} has data_offsets [${offsets}], outside of the ${dataBytes} bytes of data`);
  }
  const bytes = shape.reduce((product, n) => product * n, DTYPE_BYTES[dtype]);
  if (bytes !== end - start) {
    const needs = `${tensor} of shape [${shape}] and dtype ${dtype} needs ${bytes} bytes`;
    throw damaged(file, `${needs}, data_offsets [${offsets}] hold ${end - start}`);
  }
  return { name, dtype, shape, start, end };
}

function checkCoverage(tensors: readonly TensorInfo[], file: string, dataBytes: number): void {
  let covered = 0;
  let previous = 'the header';
  for (const { name, start, end } of [...tensors].sort((a, b) => a.start - b.start || a.end - b.end)) {
    const tensor = `tensor ${JSON.stringify(name)}`;
    if (start < covered) throw damaged(file, `${previous} and ${tensor} overlap`);
    if (start > covered) throw damaged(file, `the ${start - covered} bytes before ${tensor} belong to no tensor`);
    covered = end;
    previous = tensor;
  }
  if (covered < dataBytes) throw damaged(file, `the last ${dataBytes - covered} bytes belong to no tensor`);
}
