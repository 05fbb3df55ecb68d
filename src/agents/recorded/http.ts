import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageOf } from '../../episode/failure.ts';
import { ApiError } from './api-error.ts';

/** Bytes of a request, read whole: at most `limit`. @throws ApiError 413 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const refuse = () => {
    throw new ApiError(413, `the body is larger than ${limit} bytes`, { headers: { connection: 'close' } });
  };
  if (Number(request.headers['content-length'] ?? 0) > limit) refuse();
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limit) refuse();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Brackets inside one another; deeper JSON is no request and would exhaust the stack of what reads it. */
const MAX_DEPTH = 64;

/** @throws ApiError 400 for anything but a JSON object */
export function parseObject(body: Buffer): Readonly<Record<string, unknown>> {
  const text = body.toString('utf8');
  if (depthOf(text) > MAX_DEPTH) throw new ApiError(400, `the body nests deeper than ${MAX_DEPTH} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ApiError(400, `the body is not valid JSON: ${messageOf(error)}`, { cause: error });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ApiError(400, 'the body must be a JSON object');
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

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    ...headers,
  });
  response.end(text);
}

export function beginEvents(response: ServerResponse): void {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    connection: 'keep-alive',
  });
}

export function eventText({ event, data }: { readonly event?: string; readonly data: unknown }): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`;
}
