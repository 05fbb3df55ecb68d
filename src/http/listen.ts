import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ListenOptions {
  /** Address to listen on; 127.0.0.1 when not given. */
  readonly host?: string | undefined;
  /** 0, any free port, when not given. */
  readonly port?: number | undefined;
  /** For how long a connection without a request is kept; Node's own 5 s when not given. */
  readonly keepAliveMs?: number | undefined;
}

export interface Listening {
  /** http://host:port */
  readonly url: string;
  /** Whether the process stays alive for the server alone; it does when nothing else is said. */
  hold(held: boolean): void;
  /** Takes no more connections; resolves when every request that is under way has been answered. */
  drain(): Promise<void>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Answers HTTP requests; what is no HTTP gets a 400. `handle` answers in every case and never rejects. */
export async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  { host = '127.0.0.1', port = 0, keepAliveMs }: ListenOptions = {},
): Promise<Listening> {
  const server = createServer(keepAliveMs === undefined ? {} : { keepAliveTimeout: keepAliveMs }, handle);
  server.on('clientError', (_, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const { address, port: bound, family } = server.address() as AddressInfo;
  const closed = new Promise<void>(resolve => server.once('close', resolve));
  const stop = () => {
    if (server.listening) server.close();
    return closed;
  };
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`,
    hold: held => void (held ? server.ref() : server.unref()),
    drain() {
      const done = stop();
      server.closeIdleConnections();
      return done;
    },
    close() {
      const done = stop();
      server.closeAllConnections();
      return done;
    },
  };
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length, ...headers });
  response.end(text);
}
