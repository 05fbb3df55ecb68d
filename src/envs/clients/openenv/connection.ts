import type { WebSocket } from 'ws';
import { z } from 'zod';
import { preview } from '../../../episode/explain.ts';
import { messageOf } from '../../../episode/failure.ts';

const reply = z.looseObject({ type: z.string(), data: z.looseObject({}) });
const refusal = z.looseObject({
  message: z.string(),
  code: z.union([z.string(), z.number()]).optional(),
  /** As pydantic gives them, where a field is not as it must be. */
  errors: z.array(z.looseObject({ loc: z.array(z.union([z.string(), z.number()])), msg: z.string() })).optional(),
});

/** An error that the server replied instead of a result; it can be asked again. */
export class OpenEnvRefusal extends Error {
  override readonly name = 'OpenEnvRefusal';
  readonly code: string | undefined;
  /** Field by field, or the server's message. */
  readonly reason: string;

  constructor(url: string, data: object) {
    const { success, data: said } = refusal.safeParse(data);
    const fields = said?.errors?.map(({ loc, msg }) => [...loc, msg].join(': ')) ?? [];
    const reason = !success ? preview(data) : fields.length > 0 ? fields.join('; ') : said.message;
    super(`OpenEnv ${url}: ${reason}${said?.code === undefined ? '' : ` (${said.code})`}`);
    this.code = said?.code?.toString();
    this.reason = reason;
  }
}

/** Bytes of one message. */
const MAX_MESSAGE = 16 * 2 ** 20;
/** For a server to close the connection after it was told. */
const CLOSING_MS = 2000;

/** One WebSocket, which is one environment: a request, then its reply, then the next. */
export class OpenEnvConnection {
  readonly #url: string;
  readonly #socket: WebSocket;
  #waiting: { readonly resolve: (data: object) => void; readonly reject: (error: Error) => void } | undefined;
  /** Why it can no longer be asked. */
  #ended: Error | undefined;

  private constructor(url: string, socket: WebSocket) {
    this.#url = url;
    this.#socket = socket;
    socket.on('message', data => this.#read(String(data)));
    socket.on('close', code => this.#end(`the connection was closed (code ${code})`));
    socket.on('error', error => this.#end(messageOf(error)));
  }

  /** @param timeoutMs deadline of the handshake */
  static async open(url: string, timeoutMs: number): Promise<OpenEnvConnection> {
    const { WebSocket } = await import('ws');
    const socket = new WebSocket(url, { handshakeTimeout: timeoutMs, maxPayload: MAX_MESSAGE });
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', error =>
        reject(new Error(`OpenEnv ${url} cannot be reached: ${messageOf(error)}`, { cause: error })),
      );
    });
    return new OpenEnvConnection(url, socket);
  }

  /**
   * Sends a request and awaits its reply. An abort ends the connection: what came next would be the wrong reply.
   * @throws OpenEnvRefusal for an error that the server replied
   */
  ask(type: 'reset' | 'step', data: object, signal: AbortSignal): Promise<object> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#waiting !== undefined) return Promise.reject(new Error('OpenEnv: one request at a time'));
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#end('no reply came in time, and the connection was ended');
      const settled = () => signal.removeEventListener('abort', onAbort);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting = {
        resolve: value => {
          settled();
          resolve(value);
        },
        reject: error => {
          settled();
          reject(error);
        },
      };
      this.#socket.send(JSON.stringify({ type, data }));
    });
  }

  /** Tells the server, which closes the connection itself when there is room for another environment. */
  async close(): Promise<void> {
    if (this.#ended !== undefined) return;
    this.#ended = new Error(`OpenEnv ${this.#url}: it was closed`);
    const closed = new Promise(resolve => this.#socket.once('close', resolve));
    const late = setTimeout(() => this.#socket.terminate(), CLOSING_MS);
    this.#socket.send(JSON.stringify({ type: 'close' }));
    await closed;
    clearTimeout(late);
  }

  #read(text: string): void {
    const waiting = this.#waiting;
    const parsed = reply.safeParse(parseJson(text));
    if (waiting === undefined) this.#end(`it sent ${preview(text)}, which nobody asked for`);
    else if (!parsed.success) this.#end(`it replied ${preview(text)}, and not {type, data}`);
    else {
      this.#waiting = undefined;
      const { type, data } = parsed.data;
      if (type === 'error') waiting.reject(new OpenEnvRefusal(this.#url, data));
      else waiting.resolve(data);
    }
  }

  #end(why: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = new Error(`OpenEnv ${this.#url}: ${why}`);
    this.#socket.terminate();
    this.#waiting?.reject(this.#ended);
    this.#waiting = undefined;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // told as what it is: no reply
  }
}
