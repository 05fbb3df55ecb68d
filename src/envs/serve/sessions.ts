import { boundary } from '../../episode/failure.ts';
import type { Task } from '../../episode/task.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Environment, EnvironmentFactory } from '../contracts.ts';

export interface SessionLimits {
  /** Sessions at once; one more is refused as busy. */
  readonly maxSessions: number;
  /** A session that was not asked for so long in ms is closed. */
  readonly sessionTimeoutMs: number;
  /** Deadline of one call to the environment in ms. */
  readonly callTimeoutMs: number;
}

export interface Session {
  readonly environment: Environment;
  /** Aborts when the session is closed. */
  readonly over: AbortController;
  /** Of the last reset. */
  task: Task | undefined;
  /** The last call: its number, and what it is or will be answered with. */
  last: { readonly sequence: number; readonly answer: Promise<unknown> } | undefined;
  expiry: NodeJS.Timeout | undefined;
}

/** One environment for each session. Knows no HTTP. */
export class Sessions {
  readonly #factory: EnvironmentFactory;
  readonly #limits: SessionLimits;
  readonly #onError: (message: string) => void;
  readonly #sessions = new Map<string, Promise<Session>>();

  constructor(factory: EnvironmentFactory, limits: SessionLimits, onError: (message: string) => void) {
    this.#factory = factory;
    this.#limits = limits;
    this.#onError = onError;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** A session that is there already is the one that was asked for before. */
  async open(id: string): Promise<{ readonly fork: boolean }> {
    return described(await (this.#sessions.get(id) ?? this.#begin(id, this.#factory)));
  }

  /** One call to the environment of a session; a number that comes again is answered as before. */
  async call(id: string, sequence: number, run: (session: Session) => unknown): Promise<unknown> {
    const session = await this.#find(id);
    this.#touch(id, session);
    const { last } = session;
    if (last?.sequence === sequence) return last.answer;
    const expected = (last?.sequence ?? -1) + 1;
    if (sequence !== expected) {
      throw new Refusal(409, `call ${sequence} of this session, where ${expected} comes next`);
    }
    const { callTimeoutMs: timeoutMs } = this.#limits;
    const { signal } = session.over;
    const answer = (async () => {
      if (last !== undefined) await settled(last.answer);
      return boundary('environment', 'the environment', async () => run(session), {
        signal,
        timeoutMs,
      });
    })();
    session.last = { sequence, answer };
    return answer;
  }

  /** A copy of a session under another id. */
  fork(id: string, sequence: number, copy: string): Promise<unknown> {
    return this.call(id, sequence, async ({ environment, task }) => {
      if (environment.fork === undefined) throw new Refusal(405, 'this environment cannot be forked');
      const session = await this.#begin(copy, () => environment.fork!());
      session.task = task;
      return described(session);
    });
  }

  /** One that is not there has been closed before. */
  async close(id: string): Promise<void> {
    const opening = this.#sessions.get(id);
    if (opening === undefined) return;
    this.#sessions.delete(id);
    const session = await opening.catch(() => undefined); // who opened it was told
    if (session === undefined) return;
    clearTimeout(session.expiry);
    session.over.abort(new Error('the session is closed'));
    const { callTimeoutMs: timeoutMs } = this.#limits;
    await boundary('environment', 'environment.close', () => session.environment.close?.(), { timeoutMs });
  }

  async closeAll(): Promise<void> {
    const closed = await Promise.allSettled([...this.#sessions.keys()].map(id => this.close(id)));
    for (const one of closed) if (one.status === 'rejected') this.#onError(String(one.reason));
  }

  async #begin(id: string, make: EnvironmentFactory): Promise<Session> {
    const { maxSessions, callTimeoutMs: timeoutMs } = this.#limits;
    if (this.#sessions.has(id)) throw new Refusal(409, 'a session has this id already');
    if (this.#sessions.size >= maxSessions) {
      throw new Refusal(503, `${maxSessions} sessions are open, which is the most; raise serve.max_sessions`);
    }
    const opening = boundary('environment', 'making the environment', async () => make(), { timeoutMs }).then(
      environment => ({
        environment,
        over: new AbortController(),
        task: undefined,
        last: undefined,
        expiry: undefined,
      }),
    );
    this.#sessions.set(id, opening);
    try {
      const session = await opening;
      this.#touch(id, session);
      return session;
    } catch (error) {
      this.#sessions.delete(id);
      throw error;
    }
  }

  async #find(id: string): Promise<Session> {
    const session = this.#sessions.get(id);
    if (session !== undefined) return session;
    const { sessionTimeoutMs } = this.#limits;
    throw new Refusal(
      404,
      `no session has this id; one that is not asked for ${sessionTimeoutMs} ms is closed (serve.session_timeout_ms)`,
    );
  }

  #touch(id: string, session: Session): void {
    clearTimeout(session.expiry);
    const expire = () => {
      this.close(id).catch((error: Error) => this.#onError(`session ${id}: ${error.message}`));
    };
    session.expiry = setTimeout(expire, this.#limits.sessionTimeoutMs).unref();
  }
}

function described({ environment }: Session): { readonly fork: boolean } {
  return { fork: typeof environment.fork === 'function' };
}

function settled(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch(() => undefined); // who made that call was told
}
