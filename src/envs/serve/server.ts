import { hash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { z } from 'zod';
import { explain } from '../../episode/explain.ts';
import { EpisodeError, messageOf } from '../../episode/failure.ts';
import type { Task } from '../../episode/task.ts';
import { forkRequest, PROTOCOL, resetRequest, sessionId, stepRequest, unwired, wired } from '../clients/http/wire.ts';
import type { EnvironmentFactory } from '../contracts.ts';
import { Refusal } from './refusal.ts';
import { type SessionLimits, Sessions } from './sessions.ts';

export interface EnvironmentServerOptions extends Partial<SessionLimits> {
  readonly make: EnvironmentFactory;
  /** What is served, for who asks. */
  readonly environment: { readonly name: string; readonly version?: number | undefined };
  /** Who asks must know it. */
  readonly key: string;
  /** Address to listen on; 127.0.0.1 when not given. */
  readonly host?: string | undefined;
  /** 0, any free port, when not given. */
  readonly port?: number | undefined;
  /** Bytes of one request; 16 MiB when not given. */
  readonly maxBodyBytes?: number | undefined;
  /** Told what no client is waiting for: an environment that cannot be closed. */
  readonly onError?: ((message: string) => void) | undefined;
}

export interface EnvironmentServer {
  /** http://host:port */
  readonly url: string;
  /** Sessions that are open. */
  readonly sessions: number;
  close(): Promise<void>;
}

/** Serves an environment over HTTP, one session for each episode; the protocol is that of clients/http/wire.ts. */
export async function serveEnvironment(options: EnvironmentServerOptions): Promise<EnvironmentServer> {
  const { make, maxSessions = 1024, sessionTimeoutMs = 600_000, callTimeoutMs = 60_000 } = options;
  const { onError = () => undefined, maxBodyBytes = 16 * 2 ** 20 } = options;
  const sessions = new Sessions(make, { maxSessions, sessionTimeoutMs, callTimeoutMs }, onError);
  const key = digestOf(options.key);

  const route = async (request: IncomingMessage): Promise<unknown> => {
    const { method = 'GET', headers } = request;
    const given = (headers.authorization ?? '').replace(/^Bearer\s+/i, '');
    if (!timingSafeEqual(digestOf(given), key)) {
      throw new Refusal(401, 'the key is not the one of this server; give it as password in the URL');
    }
    const [path = '/'] = (request.url ?? '/').split('?');
    if (path === '/') return { protocol: PROTOCOL, ...options.environment, sessions: sessions.count };
    const match = /^\/sessions\/([^/]+)(?:\/(reset|step|fork))?$/.exec(path);
    if (match === null) throw new Refusal(404, `there is nothing at ${method} ${path}`);
    const id = checked(sessionId, match[1]);
    const call = match[2];
    const body = (): Promise<unknown> => readJson(request, maxBodyBytes);
    if (call === undefined) {
      if (method === 'PUT') return sessions.open(id);
      if (method === 'DELETE') return sessions.close(id).then(() => ({}));
      throw new Refusal(405, `${method} is not allowed here; PUT and DELETE are`);
    }
    if (method !== 'POST') throw new Refusal(405, `${method} is not allowed here; POST is`);
    if (call === 'reset') {
      const { sequence, task: wiredTask, seed } = checked(resetRequest, await body());
      return sessions.call(id, sequence, async session => {
        session.task = unwired<Task>(wiredTask);
        return wired(await session.environment.reset(session.task, { seed, signal: session.over.signal }));
      });
    }
    if (call === 'fork') {
      const { sequence, session: copy } = checked(forkRequest, await body());
      return sessions.fork(id, sequence, copy);
    }
    const { sequence, action } = checked(stepRequest, await body());
    return sessions.call(id, sequence, async ({ environment, task, over }) => {
      if (task === undefined) throw new Refusal(409, 'a session is reset before its first step');
      const actionTokens = Int32Array.from(action.actionTokens);
      return wired(await environment.step({ ...action, actionTokens, task, signal: over.signal }));
    });
  };

  const server = createServer(async (request, response) => {
    try {
      sendJson(response, 200, await route(request));
    } catch (error) {
      const { status, ...body } = described(error);
      sendJson(response, status, { error: body });
    }
  });
  server.on('clientError', (_, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve);
  });
  const { address, port, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    get sessions() {
      return sessions.count;
    },
    async close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()));
      server.closeAllConnections();
      await sessions.closeAll();
      await closed;
    },
  };
}

function described(error: unknown): { readonly status: number; readonly class?: string; readonly message: string } {
  const { cause } = error as { cause?: unknown };
  const refusal = error instanceof Refusal ? error : cause instanceof Refusal ? cause : undefined;
  if (refusal !== undefined) return { status: refusal.status, message: refusal.message };
  const known = error instanceof EpisodeError ? error.failureClass : 'environment';
  return { status: 500, class: known, message: messageOf(error) };
}

function checked<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Refusal(400, explain(parsed.error, value));
}

async function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  const tooLarge = new Refusal(413, `the body is larger than ${limit} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limit) throw tooLarge;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (error) {
    throw new Refusal(400, `the body is not valid JSON: ${messageOf(error)}`);
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = Buffer.from(JSON.stringify(body));
  // A body that was not read to its end leaves the connection unusable.
  const ends = status === 413 ? { connection: 'close' } : {};
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length, ...ends });
  response.end(text);
}

function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}
