import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { explain } from '../../episode/explain.ts';
import { EpisodeError, messageOf } from '../../episode/failure.ts';
import type { Task } from '../../episode/task.ts';
import { parseJson, readBody } from '../../http/body.ts';
import { bearerOf, sameKey } from '../../http/key.ts';
import { type ListenOptions, listen, sendJson } from '../../http/listen.ts';
import { Refusal } from '../../http/refusal.ts';
import { forkRequest, PROTOCOL, resetRequest, sessionId, stepRequest, unwired, wired } from '../clients/http/wire.ts';
import type { EnvironmentFactory } from '../contracts.ts';
import { type SessionLimits, Sessions } from './sessions.ts';

export interface EnvironmentServerOptions extends ListenOptions, Partial<SessionLimits> {
  readonly make: EnvironmentFactory;
  /** What is served, for who asks. */
  readonly environment: { readonly name: string; readonly version?: number | undefined };
  /** Who asks must know it. */
  readonly key: string;
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

  const route = async (request: IncomingMessage): Promise<unknown> => {
    const { method = 'GET' } = request;
    if (!sameKey(bearerOf(request), options.key)) {
      throw new Refusal(401, 'the key is not the one of this server; give it as password in the URL');
    }
    const [path = '/'] = (request.url ?? '/').split('?');
    if (path === '/') return { protocol: PROTOCOL, ...options.environment, sessions: sessions.count };
    const match = /^\/sessions\/([^/]+)(?:\/(reset|step|fork))?$/.exec(path);
    if (match === null) throw new Refusal(404, `there is nothing at ${method} ${path}`);
    const id = checked(sessionId, match[1]);
    const call = match[2];
    const body = async (): Promise<unknown> => parseJson(await readBody(request, maxBodyBytes));
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

  const listening = await listen(async (request, response) => {
    try {
      sendJson(response, 200, await route(request));
    } catch (error) {
      const { status, headers, ...body } = described(error);
      sendJson(response, status, { error: body }, headers);
    }
  }, options);
  return {
    url: listening.url,
    get sessions() {
      return sessions.count;
    },
    async close() {
      const closed = listening.close();
      await sessions.closeAll();
      await closed;
    },
  };
}

interface Described {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly class?: string;
  readonly message: string;
}

function described(error: unknown): Described {
  const { cause } = error as { cause?: unknown };
  const refusal = error instanceof Refusal ? error : cause instanceof Refusal ? cause : undefined;
  if (refusal !== undefined) {
    const { status, headers, message } = refusal;
    return { status, headers, message };
  }
  const known = error instanceof EpisodeError ? error.failureClass : 'environment';
  return { status: 500, class: known, message: messageOf(error) };
}

function checked<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Refusal(400, explain(parsed.error, value));
}
