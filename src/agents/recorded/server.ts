import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { messageOf } from '../../episode/failure.ts';
import { parseObject, readBody } from '../../http/body.ts';
import { bearerOf } from '../../http/key.ts';
import { type Listening, type ListenOptions, listen, sendJson } from '../../http/listen.ts';
import { Refusal } from '../../http/refusal.ts';
import { ApiError, tooMany } from './api-error.ts';
import { anthropic } from './dialects/anthropic.ts';
import { chat } from './dialects/chat.ts';
import {
  type AnswerRequest,
  type Dialect,
  openAiError,
  parseBody,
  type Reply,
  type ReplyStream,
} from './dialects/contracts.ts';
import { ResponsesStore } from './dialects/responses.ts';
import { beginEvents, eventText } from './events.ts';
import type { Recording } from './recording.ts';

export interface RecordingServerOptions extends Pick<ListenOptions, 'host' | 'port'> {
  /** Names of the policy that programs may ask for; `policy` when not given. `*` answers to every name. */
  readonly models?: readonly string[] | undefined;
  /** Bytes of one request; 8 MiB when not given. */
  readonly maxBodyBytes?: number | undefined;
  /** Requests answered at the same time; 4096 when not given. */
  readonly maxConcurrent?: number | undefined;
  /** Episodes open at the same time; 16384 when not given. */
  readonly maxEpisodes?: number | undefined;
  /**
   * Answers below /v1, too, for clients whose address is fixed before there are episodes: the episode is that which
   * the request names, `tokenloop_episode` in its metadata or beside it, or /ng-rollout/ID before its path. The name
   * takes the place of the key, and answers carry the ids of their tokens as in NeMo Gym.
   */
  readonly shared?: boolean | undefined;
  /** Answers what is not below an episode's URL; undefined leaves it a 404. */
  readonly other?: ((request: OtherRequest) => Promise<unknown> | undefined) | undefined;
}

export interface OtherRequest {
  readonly method: string;
  readonly path: string;
  readonly key: string;
  body(): Promise<Readonly<Record<string, unknown>>>;
}

/** Where one episode's program finds the policy. */
export interface Endpoint {
  /** Ends in /v1. */
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
  /** Its name, for requests that come by an address of many episodes. As secret as the key. */
  readonly name: string;
}

interface Open {
  readonly recording: Recording;
  readonly key: Buffer;
  readonly responses: ResponsesStore;
}

const ROUTES = ['chat/completions', 'responses', 'messages', 'rewards'];
/** Paths of requests that name their episode; NeMo Gym puts such a name before the path when it traces rollouts. */
const SHARED = /^(?:\/ng-rollout\/(?<name>[^/]+)(?:\/training-token-capture)?)?\/v1\/(?<route>.*)$/;
export const EPISODE_FIELD = 'tokenloop_episode';

const reward = z.looseObject({ reward: z.number(), id: z.string().optional() });

/** An HTTP server that speaks the OpenAI and Anthropic APIs for many episodes, each below a URL and a key of its own. */
export class RecordingServer {
  readonly #options: RecordingServerOptions;
  readonly #models: readonly string[];
  readonly #episodes = new Map<string, Open>();
  #server!: Listening;
  #running = 0;

  private constructor(options: RecordingServerOptions) {
    this.#options = options;
    this.#models = options.models ?? ['policy'];
  }

  static async start(options: RecordingServerOptions = {}): Promise<RecordingServer> {
    const started = new RecordingServer(options);
    const { host, port } = options;
    started.#server = await listen((...exchange) => started.#serve(...exchange), { host, port, keepAliveMs: 65_000 });
    // A training process ends when its work is done, whoever still holds a connection.
    started.#server.hold(false);
    return started;
  }

  get url(): string {
    return this.#server.url;
  }

  /** Name of the policy for programs that ask for one. */
  get model(): string {
    return this.#models.find(name => name !== '*') ?? 'policy';
  }

  /**
   * Gives an episode a URL and a key of its own.
   * @throws Error when too many are open
   */
  open(recording: Recording): Endpoint & { close(): void } {
    const { maxEpisodes = 16_384 } = this.#options;
    if (this.#episodes.size >= maxEpisodes) {
      throw new Error(`${maxEpisodes} episodes are open, which is the most; end some or raise maxEpisodes`);
    }
    const id = randomBytes(12).toString('hex');
    const apiKey = `tl-${randomBytes(24).toString('base64url')}`;
    this.#episodes.set(id, { recording, key: digestOf(apiKey), responses: new ResponsesStore() });
    return {
      baseURL: `${this.url}/e/${id}/v1`,
      apiKey,
      model: this.model,
      name: id,
      close: () => void this.#episodes.delete(id),
    };
  }

  /** Keeps the process alive until it is closed. */
  hold(): void {
    this.#server.hold(true);
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let dialect: Pick<Dialect, 'error' | 'done'> = { error: openAiError };
    try {
      this.#running += 1;
      const { maxConcurrent = 4096 } = this.#options;
      if (this.#running > maxConcurrent) throw tooMany(`${maxConcurrent} requests are being answered`);
      const [path = '/'] = (request.url ?? '/').split('?');
      const speak = (spoken: Dialect) => {
        dialect = spoken;
      };
      const match = /^\/e\/([^/]+)\/(?:v1\/)*(.*)$/.exec(path);
      const shared = match === null && this.#options.shared ? SHARED.exec(path)?.groups : undefined;
      if (shared !== undefined) {
        const { name, route = '' } = shared;
        return await this.#route(body => this.#named(name ?? nameOf(body)), route, request, response, speak);
      }
      if (match === null) return await this.#other(request, response, path);
      const [, id = '', route = ''] = match;
      if (route === 'messages') dialect = anthropic;
      const open = this.#authorised(id, keyOf(request));
      await this.#route(() => open, route, request, response, speak);
    } catch (error) {
      const failure = asApiError(error);
      if (!response.headersSent) sendJson(response, failure.status, dialect.error(failure), failure.headers);
      else if (!response.writableEnded) response.end(eventText({ event: 'error', data: dialect.error(failure) }));
    } finally {
      this.#running -= 1;
    }
  }

  /** The episode of a URL if the key is its own. An unknown one and a wrong key are told the same. */
  #authorised(id: string, key: string): Open {
    const open = this.#episodes.get(id);
    const given = digestOf(key);
    const isKey = timingSafeEqual(given, open?.key ?? randomBytes(given.length));
    if (open !== undefined && isKey) return open;
    throw new ApiError(401, 'no open episode has this URL and this key', {
      type: 'authentication_error',
      code: 'invalid_api_key',
    });
  }

  #named(name: string | undefined): Open {
    const open = this.#episodes.get(name ?? '');
    if (open !== undefined) return open;
    throw new ApiError(401, `the request names no open episode; its metadata needs ${EPISODE_FIELD}`, {
      type: 'authentication_error',
    });
  }

  async #other(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { method = 'GET' } = request;
    const answer = await this.#options.other?.({
      method,
      path,
      key: keyOf(request),
      body: async () => parseObject(await this.#body(request)),
    });
    if (answer === undefined) throw new ApiError(404, `there is nothing at ${method} ${path}`);
    sendJson(response, 200, answer);
  }

  async #route(
    find: (body: Readonly<Record<string, unknown>>) => Open,
    route: string,
    request: IncomingMessage,
    response: ServerResponse,
    speak: (dialect: Dialect) => void,
  ): Promise<void> {
    const { method = 'GET' } = request;
    if (route === 'models' || route.startsWith('models/')) return this.#listModels(route, response);
    if (!ROUTES.includes(route)) {
      throw new ApiError(404, `there is nothing at ${JSON.stringify(route)}`);
    }
    if (method !== 'POST')
      throw new ApiError(405, `${method} is not allowed here; POST is`, { headers: { allow: 'POST' } });
    if (route === 'messages') speak(anthropic);
    const bytes = await this.#body(request);
    const body = parseObject(bytes);
    const open = find(body);
    const dialect = { 'chat/completions': chat, responses: open.responses.dialect, messages: anthropic }[route];
    if (dialect === undefined) {
      const { reward: value, id } = parseBody(reward, body);
      open.recording.reward(value, id);
      return sendJson(response, 200, { ok: true });
    }
    speak(dialect);
    const asked = { ...dialect.parse(body), ...(this.#options.shared && { tokenIds: 'bundled' as const }) };
    this.#checkModel(asked.model);
    await this.#answer(open, dialect, asked, { bytes, route, request, response });
  }

  async #answer(
    { recording, responses }: Open,
    dialect: Dialect,
    asked: AnswerRequest,
    on: {
      readonly bytes: Buffer;
      readonly route: string;
      readonly request: IncomingMessage;
      readonly response: ServerResponse;
    },
  ): Promise<void> {
    const { bytes, route, request, response } = on;
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new Error('the client closed the connection'));
    });
    const digest = `${route} ${hash('sha256', bytes, 'base64url')}`;
    const isRetry = Number(request.headers['x-stainless-retry-count'] ?? 0) > 0;
    const live = asked.stream && asked.n === 1 && asked.topLogprobs === undefined;
    let stream: ReplyStream | undefined;
    const begin = (head: Pick<Reply, 'id' | 'created' | 'model'>) => {
      stream ??= dialect.stream(asked, head);
      if (!response.headersSent) beginEvents(response);
      return stream;
    };
    const head = { id: `${dialect.prefix}${randomBytes(12).toString('base64url')}`, model: asked.model };
    // Tokens that come together leave together.
    let waiting = '';
    const flush = () => {
      if (waiting !== '' && !response.writableEnded) response.write(waiting);
      waiting = '';
    };
    const write = (text: string) => {
      if (waiting === '') setImmediate(flush);
      const events = (stream ?? begin({ ...head, created: now() })).text(text);
      for (const event of events) waiting += eventText(event);
    };
    const { reply, delivered } = await recording.answer({
      request: asked,
      id: head.id,
      digest,
      isRetry,
      signal: gone.signal,
      ...(live ? { onText: write } : {}),
    });
    response.once('finish', delivered);
    responses.keep(asked, reply);
    if (!asked.stream) return sendJson(response, 200, dialect.body(asked, reply));
    const rest = begin(reply).finish(reply).map(eventText).join('');
    const events = waiting + rest;
    waiting = '';
    response.end(events + (dialect.done === undefined ? '' : eventText({ data: dialect.done })));
  }

  #listModels(route: string, response: ServerResponse): void {
    const describe = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'tokenloop' });
    if (route === 'models') {
      const names = this.#models.filter(name => name !== '*');
      sendJson(response, 200, { object: 'list', data: (names.length > 0 ? names : ['policy']).map(describe) });
      return;
    }
    const name = decodeURIComponent(route.slice('models/'.length));
    this.#checkModel(name);
    sendJson(response, 200, describe(name));
  }

  #checkModel(name: string): void {
    if (this.#models.includes('*') || this.#models.includes(name)) return;
    throw new ApiError(404, `there is no model ${JSON.stringify(name)}; there is ${this.#models.join(', ')}`, {
      code: 'model_not_found',
    });
  }

  #body(request: IncomingMessage): Promise<Buffer> {
    return readBody(request, this.#options.maxBodyBytes ?? 8 * 2 ** 20);
  }
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}

function keyOf(request: IncomingMessage): string {
  const key = request.headers['x-api-key'];
  return typeof key === 'string' ? key : bearerOf(request);
}

/** Of the episode that a request says it is of. */
function nameOf(body: Readonly<Record<string, unknown>>): string | undefined {
  const { metadata } = body;
  const inner = typeof metadata === 'object' && metadata !== null ? (metadata as Record<string, unknown>) : {};
  const name = inner[EPISODE_FIELD] ?? body[EPISODE_FIELD];
  return typeof name === 'string' ? name : undefined;
}

function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof Refusal) {
    const { status, message, headers } = error;
    return new ApiError(status, message, { headers, cause: error });
  }
  if (error instanceof URIError) return new ApiError(400, error.message, { cause: error });
  return new ApiError(500, messageOf(error), { type: 'server_error', cause: error });
}
