import type { z } from 'zod';
import { aggregate } from './aggregate.ts';
import type {
  NemoGymRow,
  Observed,
  ResourcesServer,
  ResourcesSession,
  ResponseObject,
  Stepped,
  Verdict,
} from './contracts.ts';
import { CookieJar } from './cookie-jar.ts';
import { type HttpReply, type RequestOptions, request } from './request.ts';
import { anything, observed, parseReply, refuseFailure, stepped, verdict } from './wire.ts';

export interface NemoGymServerOptions {
  /** Waits before each further try of a request that may be repeated. */
  readonly delaysMs?: readonly number[] | undefined;
}

/** Paths of a resources server that are no tools. */
const RESERVED = new Set([
  'verify',
  'seed_session',
  'aggregate_metrics',
  'reverify_mode',
  'mcp',
  'reset',
  'step',
  'close',
  'ng-rollout',
]);

/**
 * A resources server of NeMo Gym at `url`: environment state, tools and verifier.
 * @throws Error for anything but an HTTP address
 */
export function resourcesServer(url: string, options: NemoGymServerOptions = {}): ResourcesServer {
  const base = baseOf(url);
  return {
    session: signal => new Session(base, options, signal),
    aggregateMetrics: (verified, signal) => aggregate(base, verified, { ...options, signal }),
  };
}

/** @throws Error for anything but an HTTP address */
export function baseOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol === 'http:' || parsed?.protocol === 'https:') return url.replace(/\/+$/, '');
  throw new Error(`${JSON.stringify(url)} is no address of a NeMo Gym server; give one as in http://127.0.0.1:8000`);
}

class Session implements ResourcesSession {
  readonly #jar = new CookieJar();
  readonly #base: string;
  readonly #options: NemoGymServerOptions;
  readonly #signal: AbortSignal;
  /** What `/reset` said the server can do. */
  #abilities: Observed['info'] = {};
  #steps = 0;

  constructor(base: string, options: NemoGymServerOptions, signal: AbortSignal) {
    this.#base = base;
    this.#options = options;
    this.#signal = signal;
  }

  // A session begins with the first request that has no cookie, so that a second one is another session.
  async seed(row: NemoGymRow): Promise<void> {
    await this.#ask('/seed_session', row, anything, { repeatable: this.#jar.isEmpty });
  }

  async call(tool: string, args: unknown): Promise<{ status: number; text: string }> {
    if (RESERVED.has(tool) || tool === '' || tool.startsWith('.')) {
      return { status: 404, text: JSON.stringify({ error: `there is no tool ${JSON.stringify(tool)}` }) };
    }
    const { status, text } = await this.#send(`/${encodeURIComponent(tool)}`, args);
    return { status, text };
  }

  async verify(row: NemoGymRow, response: ResponseObject): Promise<Verdict> {
    const given = await this.#ask('/verify', { ...row, response }, verdict);
    refuseFailure('reward', '/verify', given);
    return given;
  }

  async reset(row: NemoGymRow): Promise<Observed> {
    const { observation, info } = await this.#ask('/reset', row, observed, { repeatable: this.#jar.isEmpty });
    this.#abilities = info;
    return { observation, info };
  }

  async step(row: NemoGymRow, response: ResponseObject): Promise<Stepped> {
    const repeatable = this.#abilities.supports_step_idempotency === true;
    const once = repeatable ? { _ng_step_request_id: `step-${this.#steps++}` } : {};
    const given = await this.#ask('/step', { ...row, response, ...once }, stepped, { repeatable });
    refuseFailure('environment', '/step', given);
    const { observation, reward, terminated, truncated, info } = given;
    return { observation, reward, terminated, truncated, info, toolOutputs: info.tool_outputs ?? [] };
  }

  async close(): Promise<void> {
    if (this.#abilities.supports_explicit_close !== true) return;
    // The episode is over by now, and with it its signal.
    await this.#ask('/close', {}, anything, { signal: new AbortController().signal });
  }

  async #ask<T>(path: string, body: unknown, schema: z.ZodType<T>, more: Partial<RequestOptions> = {}): Promise<T> {
    return parseReply(schema, await this.#send(path, body, more));
  }

  async #send(path: string, body: unknown, more: Partial<RequestOptions> = {}): Promise<HttpReply> {
    const options = { body, cookies: this.#jar.header, signal: this.#signal, ...this.#options, ...more };
    const reply = await request(this.#base + path, options);
    this.#jar.keep(reply.headers['set-cookie'] ?? [], Date.now());
    return reply;
  }
}
