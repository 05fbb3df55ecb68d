import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectory } from '../storage/directories.ts';
import { AppendFile } from './append-file.ts';

/**
 * A file of JSON objects, one a line, each with its `step`, in the order of the steps. A line is there whole or not at
 * all.
 */
export class JsonlFile {
  readonly #file: AppendFile;

  private constructor(file: AppendFile) {
    this.#file = file;
  }

  /**
   * Opens `path` for appending, creating it and its directory. With `resumeAfter` the records of later steps are
   * removed, since the resumed run will write them again; without it the file starts empty. A last line that a crash
   * cut short is removed. `cursor` is where those records begin, if it is known, which spares the search for it.
   */
  static async open(
    path: string,
    { resumeAfter, cursor }: { readonly resumeAfter?: number; readonly cursor?: number | undefined } = {},
  ): Promise<JsonlFile> {
    await makeDirectory(dirname(path));
    const keep = async (file: FileHandle) => {
      if (resumeAfter === undefined) return 0;
      const known = cursor !== undefined && (await isLineEnd(file, cursor)) ? cursor : undefined;
      return known ?? (await endOf(file, path, resumeAfter));
    };
    return new JsonlFile(await AppendFile.open(path, keep));
  }

  /** Appends one line for each JSON text; they arrive together, or none does and the promise rejects. */
  append(lines: readonly string[]): Promise<void> {
    return this.#file.append(Buffer.from(lines.map(line => `${line}\n`).join('')));
  }

  /** Waits until everything appended is on the disk; gives the end of the file, in bytes. */
  sync(): Promise<number> {
    return this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

async function isLineEnd(file: FileHandle, offset: number): Promise<boolean> {
  if (offset === 0) return true;
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, offset - 1);
  return bytesRead === 1 && buffer[0] === 10;
}

/** Offset behind the last whole line whose step is at most `last`. */
async function endOf(file: FileHandle, path: string, last: number): Promise<number> {
  const chunk = Buffer.alloc(1 << 20);
  let pending = Buffer.alloc(0);
  let offset = 0;
  let line = 0;
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) return offset;
    position += bytesRead;
    pending = Buffer.concat([pending, chunk.subarray(0, bytesRead)]);
    for (let newline = pending.indexOf(10); newline >= 0; newline = pending.indexOf(10)) {
      line += 1;
      if (stepOf(pending.subarray(0, newline).toString(), `${path}:${line}`) > last) return offset;
      offset += newline + 1;
      pending = pending.subarray(newline + 1);
    }
  }
}

function stepOf(line: string, where: string): number {
  let step: unknown;
  try {
    step = (JSON.parse(line) as { step?: unknown }).step;
  } catch (cause) {
    throw new Error(`${where}: not JSON; remove the line, or the file, to resume into this directory`, { cause });
  }
  if (typeof step === 'number') return step;
  throw new Error(`${where}: no "step" number; remove the line, or the file, to resume into this directory`);
}
