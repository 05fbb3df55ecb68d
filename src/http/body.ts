import type { IncomingMessage } from 'node:http';
import { Refusal } from './refusal.ts';

/** Bytes of a request, read whole: at most `limit`. @throws Refusal 413 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  // A body that was not read to its end leaves the connection unusable.
  const tooLarge = () =>
    new Refusal(413, `the body is larger than ${limit} bytes`, { headers: { connection: 'close' } });
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limit) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Brackets inside one another; deeper JSON is no request and would exhaust the stack of what reads it. */
const MAX_DEPTH = 64;

/** @throws Refusal 400 for anything but JSON */
export function parseJson(body: Buffer): unknown {
  const text = body.toString('utf8');
  if (depthOf(text) > MAX_DEPTH) throw new Refusal(400, `the body nests deeper than ${MAX_DEPTH} levels`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal(400, `the body is not valid JSON: ${(error as Error).message}`, { cause: error });
  }
}

/** @throws Refusal 400 for anything but a JSON object */
export function parseObject(body: Buffer): Readonly<Record<string, unknown>> {
  const value = parseJson(body);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Refusal(400, 'the body must be a JSON object');
}

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (quoted) {
      if (code === 0x5c) i += 1;
      else if (code === 0x22) quoted = false;
    } else if (code === 0x22) quoted = true;
    else if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
  return deepest;
}
