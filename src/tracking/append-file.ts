import { type FileHandle, open } from 'node:fs/promises';

/** A file that grows at its end, in the order of the calls. What a failed write left behind is cut off again. */
export class AppendFile {
  readonly #file: FileHandle;
  #end: number;
  #queue: Promise<void> = Promise.resolve();

  private constructor(file: FileHandle, end: number) {
    this.#file = file;
    this.#end = end;
  }

  /** Opens or makes the file; `keep` says how many of its bytes stay. */
  static async open(path: string, keep: (file: FileHandle) => Promise<number> = async () => 0): Promise<AppendFile> {
    // Appending mode: a write goes to the end of the file even after a failed one was cut off.
    const file = await open(path, 'a+');
    try {
      const end = await keep(file);
      await file.truncate(end);
      return new AppendFile(file, end);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** All of `bytes` or, when the promise rejects, none of them. */
  append(bytes: Uint8Array): Promise<void> {
    const written = this.#queue.then(async () => {
      try {
        await this.#file.appendFile(bytes);
        this.#end += bytes.length;
      } catch (error) {
        await this.#file.truncate(this.#end);
        throw error;
      }
    });
    this.#queue = written.catch(() => undefined);
    return written;
  }

  /** Waits until everything appended is on the disk; gives the end of the file, in bytes. */
  async sync(): Promise<number> {
    await this.#queue;
    await this.#file.sync();
    return this.#end;
  }

  async close(): Promise<void> {
    try {
      await this.sync();
    } finally {
      await this.#file.close();
    }
  }
}
