import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { preview } from '../../../episode/explain.ts';
import { EpisodeError, FAILURE_CLASSES, type FailureClass, messageOf } from '../../../episode/failure.ts';
import type { Action, Environment, EnvironmentFactory, Reset, StepResult } from '../../contracts.ts';
import { unwired, wired, wiredAction } from './wire.ts';

export interface HttpEnvironmentOptions {
  /** Where `tokenloop serve-env` listens, with the key as password: http://key:tl-…@host:port. */
  readonly url: string;
  /** Send `observationText` with every step, which makes messages grow with the episode; true when not given. */
  readonly observationText?: boolean | undefined;
  /** Deadline for making a session in ms; 30 000 when not given. Other calls have the episode's deadline. */
  readonly connectTimeoutMs?: number | undefined;
}

/** How often a call is made again whose answer was lost or which the server was too busy for, and the first wait in ms. */
const RETRIES = 3;
const FIRST_WAIT = 100;
const BUSY = [429, 502, 503, 504];

/**
 * An environment in another process or on another machine, served by `tokenloop serve-env`. Each episode has a session
 * of its own there. A call whose answer is lost is made again under its number, which the server knows: no step is taken
 * twice.
 * @throws Error for a URL that is none
 */
export function httpEnvironment(options: HttpEnvironmentOptions): EnvironmentFactory {
  const { connectTimeoutMs = 30_000 } = options;
  const server = new Server(options.url);
  return async () => {
    const id = newId();
    const signal = AbortSignal.timeout(connectTimeoutMs);
    const { fork } = await server.call<{ fork?: boolean }>('PUT', `sessions/${id}`, {}, signal);
    return environmentOf(new Session(server, id, options.observationText ?? true), fork === true);
  };
}

function environmentOf(session: Session, canFork: boolean): Environment {
  return {
    reset: (task, { seed, signal }) => session.call<Reset>('reset', { task: wired(task), seed }, signal),
    step: action => session.step(action),
    close: () => session.close(),
    ...(canFork && { fork: async () => environmentOf(await session.fork(), true) }),
  };
}

class Session {
  readonly #server: Server;
  readonly #id: string;
  readonly #withObservation: boolean;
  #sequence = 0;

  constructor(server: Server, id: string, withObservation: boolean) {
    this.#server = server;
    this.#id = id;
    this.#withObservation = withObservation;
  }

  async call<T extends Reset | StepResult>(name: string, body: object, signal?: AbortSignal): Promise<T> {
    return unwired<T>(await this.#post(name, body, signal));
  }

  step(action: Action): Promise<StepResult> {
    return this.call<StepResult>('step', { action: wiredAction(action, this.#withObservation) }, action.signal);
  }

  async fork(): Promise<Session> {
    const id = newId();
    await this.#post('fork', { session: id });
    return new Session(this.#server, id, this.#withObservation);
  }

  async close(): Promise<void> {
    await this.#server.call('DELETE', `sessions/${this.#id}`, undefined);
  }

  #post<T>(name: string, body: object, signal?: AbortSignal): Promise<T> {
    const sequence = this.#sequence++;
    return this.#server.call('POST', `sessions/${this.#id}/${name}`, { sequence, ...body }, signal);
  }
}

class Server {
  /** Without the key: it goes into messages. */
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(given: string) {
    const key = decodeURIComponent(parsedUrl(given).password);
    this.#url = withoutKey(given);
    this.#headers = { 'content-type': 'application/json', ...(key === '' ? {} : { authorization: `Bearer ${key}` }) };
  }

  async call<T>(method: string, path: string, body: object | undefined, signal?: AbortSignal): Promise<T> {
    for (let wait = FIRST_WAIT, attempt = 0; ; attempt++, wait *= 2) {
      const given = await this.#ask(method, path, body, signal);
      if ('value' in given) return given.value as T;
      if (!given.again || attempt >= RETRIES) throw given.error;
      await delay(wait, undefined, signal ? { signal } : {});
    }
  }

  async #ask(method: string, path: string, body: object | undefined, signal: AbortSignal | undefined) {
    const given = body === undefined ? {} : { body: JSON.stringify(body) };
    // A redirection would take the key elsewhere.
    const request: RequestInit = { method, headers: this.#headers, redirect: 'error', ...given };
    let status: number;
    let text: string;
    try {
      const response = await fetch(this.#url + path, signal ? { ...request, signal } : request);
      status = response.status;
      text = await response.text();
    } catch (error) {
      if (signal?.aborted && (signal.reason as Error)?.name !== 'TimeoutError') throw signal.reason;
      const { cause } = error as { cause?: unknown };
      const why = cause instanceof Error ? `${messageOf(error)}: ${cause.message}` : messageOf(error);
      return { again: !signal?.aborted, error: new Error(`${this.#url} cannot be reached: ${why}`, { cause: error }) };
    }
    const value = parsed(text);
    if (status === 200 && value !== undefined) return { value };
    return { again: BUSY.includes(status), error: this.#refusal(status, text, value) };
  }

  #refusal(status: number, text: string, value: object | undefined): Error {
    const { class: given, message } = ((value as { error?: object } | undefined)?.error ?? {}) as {
      class?: unknown;
      message?: unknown;
    };
    const known = FAILURE_CLASSES.includes(given as FailureClass) ? (given as FailureClass) : undefined;
    const said = typeof message === 'string' ? message : preview(text);
    if (status === 200) return new Error(`${this.#url} answered ${said}, and not a JSON object`);
    if (known !== undefined) return new EpisodeError(known, `${this.#url}: ${said}`);
    return new Error(`${this.#url} answered ${status}: ${said}`);
  }
}

function parsedUrl(given: string): URL {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url;
  throw new Error(`${preview(given)} is no address of an environment; expected http://host:port or https://host`);
}

/** An address as messages show it; it ends in a slash. @throws Error if it is none */
export function withoutKey(given: string): string {
  const url = parsedUrl(given);
  url.username = '';
  url.password = '';
  return url.href.replace(/\/*$/, '/');
}

function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined; // said by who asked, with the text
  }
}

/** Drawn here, so that making a session can be tried again. */
function newId(): string {
  return randomBytes(18).toString('base64url');
}
