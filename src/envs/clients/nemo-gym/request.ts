import { Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../../episode/failure.ts';

/**
 * One request of a NeMo Gym server. `fetch` gives up after five minutes without an answer, and a `/run` takes as long
 * as its episode, so this is Node's own client. A connection serves one request: one that a server closes while it is
 * idle would lose a request that must not be sent twice.
 */

export interface RequestOptions {
  readonly method?: 'GET' | 'POST';
  readonly body?: unknown;
  readonly cookies?: string | undefined;
  readonly signal: AbortSignal;
  /** A second one does no harm: it is sent again when the first one is lost, or the server says it is not ready. */
  readonly repeatable?: boolean;
  /** Waits before each further try; 100 and 500 ms when not given. */
  readonly delaysMs?: readonly number[] | undefined;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** The connection failed. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  /** False where the server cannot have seen the request. */
  readonly reached: boolean;

  constructor(message: string, reached: boolean, cause: unknown) {
    super(message, { cause });
    this.reached = reached;
  }
}

/** Bytes of an answer that are read; a longer one is an error. */
const MAX_BYTES = 64 * 2 ** 20;
const DELAYS_MS = [100, 500];
const AGENTS = { 'http:': new HttpAgent({ keepAlive: false }), 'https:': new HttpsAgent({ keepAlive: false }) };

/**
 * The answer, whatever its status. A request that never reached the server is sent again; one that may have is only
 * when it is repeatable.
 * @throws ConnectionError, or the signal's reason
 */
export async function request(url: string, options: RequestOptions): Promise<HttpReply> {
  const { signal, repeatable = false, delaysMs = DELAYS_MS } = options;
  for (let tries = 0; ; tries++) {
    const delay = delaysMs[tries];
    try {
      const reply = await send(url, options);
      if (delay === undefined || !repeatable || ![502, 503, 504].includes(reply.status)) return reply;
    } catch (error) {
      signal.throwIfAborted();
      const again = error instanceof ConnectionError && (repeatable || !error.reached);
      if (delay === undefined || !again) throw error;
    }
    await wait(delay, undefined, { signal });
  }
}

function send(url: string, { method = 'POST', body, cookies, signal }: RequestOptions): Promise<HttpReply> {
  const target = new URL(url);
  const isHttps = target.protocol === 'https:';
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const headers = {
    accept: 'application/json',
    ...(bytes && { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
    ...(cookies && { cookie: cookies }),
  };
  return new Promise<HttpReply>((resolve, reject) => {
    let connected = false;
    const fail = (error: unknown) => {
      const why = (error as { code?: string }).code ?? messageOf(error);
      reject(new ConnectionError(`${method} ${url}: ${said(why, connected)}`, connected, error));
    };
    const agent = AGENTS[isHttps ? 'https:' : 'http:'];
    const outgoing = (isHttps ? httpsRequest : httpRequest)(target, { method, headers, agent, signal }, incoming => {
      const chunks: Buffer[] = [];
      let length = 0;
      incoming.on('error', fail);
      incoming.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > MAX_BYTES) incoming.destroy(new Error(`the answer is longer than ${MAX_BYTES} bytes`));
      });
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text });
      });
    });
    outgoing.on('socket', socket => socket.once('connect', () => (connected = true)));
    outgoing.on('error', fail);
    outgoing.end(bytes);
  });
}

function said(code: string, connected: boolean): string {
  if (code === 'ECONNREFUSED') return 'connection refused; is the server up, and is this its address?';
  if (code === 'ECONNRESET') return 'the connection broke before the answer was whole';
  return connected ? code : `no connection (${code})`;
}
