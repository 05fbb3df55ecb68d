import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface JsonRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: whatever a client sends
  readonly body: any;
}

/** What a handler throws is the answer. */
export class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface JsonServer {
  readonly url: string;
  /** Everything that was asked, in order. */
  readonly requests: readonly JsonRequest[];
  /** What a client did against the protocol. */
  readonly faults: readonly string[];
  /** The next requests are answered with these statuses; 200 answers as usual. */
  readonly fail: (...statuses: number[]) => void;
  close(): Promise<void>;
}

/** A server on this machine that answers JSON with JSON. A Refusal of a handler is a fault of the client. */
export async function jsonServer(handle: (request: JsonRequest) => unknown): Promise<JsonServer> {
  const requests: JsonRequest[] = [];
  const faults: string[] = [];
  const failing: number[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://here');
    const path = decodeURIComponent(pathname);
    const answer = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    try {
      const body = incoming.headers['content-type']?.startsWith('application/json') && text ? JSON.parse(text) : text;
      const request = { method: incoming.method ?? '', path, query: searchParams, headers: incoming.headers, body };
      requests.push(request);
      const status = failing.shift();
      // A broken server repeats what it was told.
      if (status !== undefined && status !== 200)
        answer(status, { error: 'as the test says', headers: incoming.headers });
      else answer(200, handle(request));
    } catch (error) {
      faults.push(`${incoming.method} ${path}: ${(error as Error).message}`);
      answer(error instanceof Refusal ? error.status : 500, { error: (error as Error).message });
    }
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    faults,
    fail: (...statuses) => failing.push(...statuses),
    close: () =>
      new Promise(resolve => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
