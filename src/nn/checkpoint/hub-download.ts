import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, type FileHandle, mkdir, open, rename, rm, stat, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { explainDiskError } from '../../storage/atomic.ts';
import { HubError, silence } from './hub-request.ts';

/** A file of a repository as the hub lists it. */
export interface HubFile {
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  /** Of its content: SHA-256 of a large file (64 hexadecimal digits), otherwise the id of the git blob (40). */
  readonly digest: string;
}

export interface DownloadOptions {
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal | undefined;
  /** Consecutive attempts without a single new byte. */
  readonly attempts: number;
  /** Longest silence of the hub. */
  readonly timeoutMs: number;
  /** Told how many bytes of the file are on the disk. */
  readonly onBytes: (bytes: number) => void;
}

/** Size of a file in bytes; undefined where there is none. */
export async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw explainDiskError(path, error);
  }
}

/**
 * Fetches `url` into `blobs/<digest>` and gives that path. What an earlier attempt left in `<digest>.incomplete` is
 * continued; the file gets its name only when its size and digest are right. Processes that fetch the same file at
 * once do not disturb each other: each writes the same bytes to the same places.
 */
export async function downloadBlob(
  file: HubFile,
  url: string,
  blobs: string,
  options: DownloadOptions,
): Promise<string> {
  const blob = join(blobs, file.digest);
  if ((await sizeOf(blob)) === file.size) return blob;
  const partial = `${blob}.incomplete`;
  await mkdir(blobs, { recursive: true });
  let failures = 0;
  let restarted = false;
  for (;;) {
    const before = (await sizeOf(partial)) ?? 0;
    const failure = await append(partial, before, file, url, options);
    const size = (await sizeOf(partial)) ?? 0;
    if (size === file.size) {
      if ((await digestOf(partial, file)) === file.digest) break;
      await rm(partial, { force: true });
      if (restarted || before === 0) {
        throw new HubError(
          `${file.path} came with other content than the hub lists (digest ${file.digest}); try again, or check HF_ENDPOINT and any proxy`,
        );
      }
      // The part from an earlier run was not of this file.
      restarted = true;
      continue;
    }
    failures = size > before ? 1 : failures + 1;
    if (failures >= options.attempts) {
      throw new HubError(
        `${file.path} broke off at ${size} of ${file.size} bytes${failure ? ` (${failure.message})` : ''}; run again to continue from there`,
        { cause: failure },
      );
    }
  }
  await rename(partial, blob).catch(async error => {
    // Another process was faster.
    if ((await sizeOf(blob)) !== file.size) throw error;
  });
  return blob;
}

/** Appends what one request gives. Gives the error of a connection that broke, and throws every other. */
async function append(
  partial: string,
  have: number,
  file: HubFile,
  url: string,
  options: DownloadOptions,
): Promise<Error | undefined> {
  const disk = await open(partial, constants.O_WRONLY | constants.O_CREAT).catch(error => {
    throw explainDiskError(partial, error);
  });
  try {
    const start = have > file.size ? 0 : have;
    if (start < have) await disk.truncate(0);
    if (start === file.size) return undefined;
    const headers = { 'accept-encoding': 'identity', ...(start > 0 && { range: `bytes=${start}-` }) };
    const response = await options.fetch(url, { headers });
    // Who does not know ranges sends the whole file: the same bytes are written again.
    let position = response.status === 206 ? start : 0;
    const broken = await receive(response, options, async chunk => {
      if (position + chunk.length > file.size) {
        throw new HubError(`${file.path} is longer than the ${file.size} bytes that the hub lists; check HF_ENDPOINT`);
      }
      await writeAll(disk, chunk, position, partial);
      position += chunk.length;
      options.onBytes(position);
    });
    await disk.sync();
    return broken;
  } finally {
    await disk.close();
  }
}

/** Hands over the body piece by piece. Gives what broke the connection, if anything did. */
async function receive(
  response: Response,
  { signal, timeoutMs }: DownloadOptions,
  take: (chunk: Uint8Array) => Promise<void>,
): Promise<Error | undefined> {
  const reader = response.body?.getReader();
  if (reader === undefined) return undefined;
  const cancel = () => reader.cancel().catch(() => undefined);
  const watch = silence(timeoutMs, signal);
  watch.signal.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      let chunk: Awaited<ReturnType<typeof reader.read>>;
      try {
        chunk = await reader.read();
      } catch (error) {
        return error instanceof Error ? error : new Error(String(error));
      }
      signal?.throwIfAborted();
      if (watch.signal.aborted) return watch.signal.reason as Error;
      if (chunk.value === undefined) return undefined;
      watch.heard();
      await take(chunk.value);
    }
  } finally {
    watch.end();
    await cancel();
  }
}

async function writeAll(disk: FileHandle, bytes: Uint8Array, position: number, path: string): Promise<void> {
  try {
    for (let done = 0; done < bytes.length; ) {
      done += (await disk.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
    }
  } catch (error) {
    throw explainDiskError(path, error);
  }
}

async function digestOf(path: string, { digest, size }: HubFile): Promise<string> {
  const hash = digest.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Makes `pointer` a link to `blob`, or a copy where the system allows no links. */
export async function linkBlob(blob: string, pointer: string): Promise<void> {
  await mkdir(dirname(pointer), { recursive: true });
  const temporary = `${pointer}.${process.pid}.tmp`;
  try {
    await symlink(relative(dirname(pointer), blob), temporary);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw explainDiskError(pointer, error);
    await copyFile(blob, temporary);
  }
  await rename(temporary, pointer);
}
