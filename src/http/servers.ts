import { setTimeout as delay } from 'node:timers/promises';
import { HttpFailure } from './client.ts';

export interface ServersOptions {
  /** At least one. */
  readonly urls: readonly string[];
  /** Attempts per call, over all servers; 5 when not given. */
  readonly attempts?: number | undefined;
  /** Wait before the second attempt at the same server, doubled each time, of which a random half; 500 ms when not given. */
  readonly backoffMs?: number | undefined;
  /** No wait is longer; 10 s when not given. */
  readonly maxBackoffMs?: number | undefined;
  /** So many failures on end take a server out of use; 3 when not given. */
  readonly failuresToOpen?: number | undefined;
  /** After so long it gets one call again, to show whether it is back; 5 s when not given. */
  readonly openMs?: number | undefined;
  /** Milliseconds that only grow, in [0, 1) at random, and waiting: for tests. */
  readonly now?: (() => number) | undefined;
  readonly random?: (() => number) | undefined;
  readonly wait?: ((ms: number, signal?: AbortSignal) => Promise<unknown>) | undefined;
}

interface Server {
  readonly url: string;
  inFlight: number;
  /** Failures on end. */
  failures: number;
  /** Out of use until then. */
  openUntil: number;
  /** Calls begun, so that equal servers take turns. */
  begun: number;
}

/** What became of a call that no server answered. */
export class NoServerError extends Error {}

/**
 * Servers that can each answer every call. A call goes to the one that has the fewest under way; one that fails is
 * replaced at once by another, and asked again after a wait that doubles. A server that fails again and again is left
 * alone for a while (a circuit breaker), then tried with one call.
 */
export class Servers {
  readonly #servers: readonly Server[];
  readonly #options: ServersOptions;

  constructor(options: ServersOptions) {
    const { urls, attempts = 1 } = options;
    if (urls.length === 0) throw new Error('at least one server is needed, and none is given');
    if (!(Number.isInteger(attempts) && attempts >= 1)) {
      throw new Error(`the number of attempts must be a whole number ≥ 1, got ${attempts}`);
    }
    this.#options = options;
    this.#servers = urls.map(url => ({ url, inFlight: 0, failures: 0, openUntil: 0, begun: 0 }));
  }

  /**
   * Makes a call at one server after the other until one answers.
   * @throws HttpFailure that a second attempt would only repeat; NoServerError with what every attempt came to
   */
  async call<T>(request: (url: string) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { attempts = 5 } = this.#options;
    const problems: string[] = [];
    const tried = new Set<Server>();
    for (let attempt = 1; ; attempt++) {
      const server = this.#next(tried);
      if (server.openUntil > this.#now()) await this.#wait(server.openUntil - this.#now(), signal);
      signal?.throwIfAborted();
      try {
        return await this.#at(server, request);
      } catch (error) {
        if (!(error instanceof HttpFailure) || !error.retryable) throw error;
        problems.push(error.message);
        if (attempt >= attempts) {
          throw new NoServerError(`no answer in ${attempts} attempts: ${[...new Set(problems)].join('; ')}`, {
            cause: error,
          });
        }
        const isRepeat = tried.has(server) || this.#servers.every(other => tried.has(other) || other === server);
        tried.add(server);
        if (isRepeat && !error.answered)
          await this.#wait(Math.max(error.retryAfterMs ?? 0, this.#backoff(attempt)), signal);
      }
    }
  }

  /** In use before out of use, not tried before tried, then the one with the fewest calls under way. */
  #next(tried: ReadonlySet<Server>): Server {
    const now = this.#now();
    const rank = (server: Server) => [
      server.openUntil > now ? server.openUntil : 0,
      tried.has(server) ? 1 : 0,
      server.inFlight,
      server.begun,
    ];
    return [...this.#servers].sort((a, b) => {
      const [x, y] = [rank(a), rank(b)];
      return x.map((value, i) => value - y[i]!).find(difference => difference !== 0) ?? 0;
    })[0]!;
  }

  async #at<T>(server: Server, request: (url: string) => Promise<T>): Promise<T> {
    const { failuresToOpen = 3, openMs = 5000 } = this.#options;
    // Until it has answered nobody else is sent to a server that was out of use.
    if (server.failures >= failuresToOpen) server.openUntil = this.#now() + openMs;
    server.inFlight += 1;
    server.begun += 1;
    try {
      const answer = await request(server.url);
      server.failures = 0;
      server.openUntil = 0;
      return answer;
    } catch (error) {
      if (error instanceof HttpFailure && error.answered) {
        server.failures = 0;
        server.openUntil = 0;
      } else if (error instanceof HttpFailure && error.retryable) {
        server.failures += 1;
        if (server.failures >= failuresToOpen) server.openUntil = this.#now() + openMs;
      }
      throw error;
    } finally {
      server.inFlight -= 1;
    }
  }

  #backoff(attempt: number): number {
    const { backoffMs = 500, maxBackoffMs = 10_000, random = Math.random } = this.#options;
    return Math.min(maxBackoffMs, backoffMs * 2 ** (attempt - 1)) * (0.5 + random() / 2);
  }

  #now(): number {
    return (this.#options.now ?? performance.now.bind(performance))();
  }

  async #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { wait = (time, stop) => delay(time, undefined, { ...(stop && { signal: stop }) }) } = this.#options;
    await wait(ms, signal);
  }
}
