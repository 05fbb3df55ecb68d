import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { messageOf } from '../episode/failure.ts';
import type { Image } from '../episode/task.ts';
import { preview } from './columns.ts';

/** What the bytes of a file begin with, in hexadecimal digits. */
const MAGIC: readonly (readonly [string, RegExp])[] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^4749463839|^4749463837/],
  ['image/webp', /^52494646.{8}57454250/],
];

/**
 * The images of a column: one or a list, each a path (relative to the dataset's file), base64, a data URL, or
 * `{bytes, path}` as dataset libraries store them, `bytes` in base64. Null and missing columns hold none.
 * @throws naming the image, for what is none of these or no PNG, JPEG, GIF or WebP
 */
export function imagesOf(value: unknown, file: string): readonly Image[] {
  if (value === undefined || value === null) return [];
  return (Array.isArray(value) ? value : [value]).map((one, i) => {
    try {
      return imageOf(one, dirname(file));
    } catch (error) {
      throw new Error(`image ${i + 1}: ${messageOf(error)}`, { cause: error });
    }
  });
}

function imageOf(value: unknown, folder: string): Image {
  const { bytes, path } = typeof value === 'object' && value !== null ? (value as Stored) : textual(value);
  if (typeof bytes === 'string') return recognised(Buffer.from(bytes, 'base64'), 'its bytes');
  if (typeof path === 'string') return recognised(readFileSync(resolve(folder, path)), path);
  throw new Error(`expected a path, base64 or {bytes, path}, got ${preview(value)}`);
}

interface Stored {
  readonly bytes?: unknown;
  readonly path?: unknown;
}

function textual(value: unknown): Stored {
  if (typeof value !== 'string' || value === '') return {};
  if (/^https?:/.test(value)) {
    throw new Error(`${preview(value)} is an address; fetch it, and give the path of the file`);
  }
  const data = /^data:[^,]*;base64,/.exec(value);
  if (data) return { bytes: value.slice(data[0].length) };
  // No image is shorter than this, and no path that is longer looks like base64.
  return value.length > 64 && /^[A-Za-z0-9+/\s]+={0,2}$/.test(value) && isKnown(Buffer.from(value, 'base64'))
    ? { bytes: value }
    : { path: value };
}

function recognised(data: Uint8Array, what: string): Image {
  const mediaType = mediaTypeOf(data);
  if (mediaType === undefined) throw new Error(`${what} is no PNG, JPEG, GIF or WebP image`);
  return { mediaType, data };
}

const isKnown = (data: Uint8Array) => mediaTypeOf(data) !== undefined;

function mediaTypeOf(data: Uint8Array): string | undefined {
  const head = Buffer.from(data.buffer, data.byteOffset, Math.min(16, data.length)).toString('hex');
  return MAGIC.find(([, magic]) => magic.test(head))?.[0];
}
