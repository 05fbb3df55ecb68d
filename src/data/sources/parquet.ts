import { open } from 'node:fs/promises';
import type { AsyncBuffer, FileMetaData } from 'hyparquet';
import { messageOf } from '../../episode/failure.ts';
import type { RawRow } from './source.ts';

/** Rows of a Parquet file, a row group at a time. */
export async function* parquetRows(path: string): AsyncGenerator<readonly RawRow[]> {
  const [{ parquetMetadataAsync, parquetReadObjects }, { compressors }] = await Promise.all([
    import('hyparquet'),
    import('hyparquet-compressors'),
  ]);
  const disk = await open(path);
  try {
    const file = await bufferOf(disk);
    const metadata = await parquetMetadataAsync(file).catch(error => {
      throw new Error(`${path}: not a Parquet file (${messageOf(error)})`, { cause: error });
    });
    checkCompression(path, metadata, Object.keys(compressors));
    let rowStart = 0;
    for (const [group, { num_rows: rows }] of metadata.row_groups.entries()) {
      const rowEnd = rowStart + Number(rows);
      const read = { file, metadata, rowStart, rowEnd, compressors, utf8: false };
      const objects = await parquetReadObjects(read).catch(error => {
        throw new Error(
          `${path}: row group ${group + 1} (from row ${rowStart + 1}) cannot be read: ${messageOf(error)}`,
          {
            cause: error,
          },
        );
      });
      yield objects.map((object, i) => ({ number: rowStart + i + 1, value: jsonOf(object) }));
      rowStart = rowEnd;
    }
  } finally {
    await disk.close();
  }
}

async function bufferOf(disk: Awaited<ReturnType<typeof open>>): Promise<AsyncBuffer> {
  const { size } = await disk.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      const bytes = new Uint8Array(end - start);
      await disk.read(bytes, 0, bytes.length, start);
      return bytes.buffer;
    },
  };
}

/** Said before any row is read, and with the name of the column. */
function checkCompression(path: string, { row_groups: groups }: FileMetaData, known: readonly string[]): void {
  for (const { columns } of groups) {
    for (const { meta_data: column } of columns) {
      if (column === undefined || column.codec === 'UNCOMPRESSED' || known.includes(column.codec)) continue;
      throw new Error(
        `${path}: column "${column.path_in_schema.join('.')}" is compressed with ${column.codec}; write the file again with one of ${known.join(', ')}, or none`,
      );
    }
  }
}

/** A value in the types of JSON: whole numbers beyond 2^53 become text, dates ISO 8601, bytes that are no text base64. */
function jsonOf(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return textOrBase64(value);
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return Array.from(value as ArrayLike<unknown>, jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, jsonOf(part)]));
}

/** Writers that do not say which bytes are text are common. */
function textOrBase64(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return Buffer.from(bytes).toString('base64');
    throw error;
  }
}
