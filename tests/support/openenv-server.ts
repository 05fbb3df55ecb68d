import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

export interface OpenEnvServer {
  /** http://host:port */
  readonly url: string;
  /** Every frame that came, in order, over all connections. */
  readonly frames: readonly { readonly type: string; readonly data?: Readonly<Record<string, unknown>> }[];
  /** Connections that are open. */
  readonly connections: number;
  close(): Promise<void>;
}

/**
 * A server of the OpenEnv protocol: a WebSocket at /ws, one environment a connection, frames {type, data}, a reply to each
 * but `close`. Its environment echoes {message} and ends after three steps. Messages die, hang, refuse, odd, text and
 * chatter do what servers do on bad days.
 */
export async function openEnvServer(): Promise<OpenEnvServer> {
  const frames: OpenEnvServer['frames'][number][] = [];
  const http = createServer((_, response) => response.writeHead(200).end('{"status":"healthy"}'));
  const server = new WebSocketServer({ server: http, path: '/ws' });
  server.on('connection', socket => {
    let steps = 0;
    socket.on('message', text => {
      const frame = JSON.parse(String(text)) as OpenEnvServer['frames'][number];
      frames.push(frame);
      if (frame.type === 'close') return socket.close();
      if (frame.type === 'reset') {
        steps = 0;
        return reply(socket, { observation: { echoed: `seed ${frame.data!.seed}`, steps }, reward: null, done: false });
      }
      if (frame.type !== 'step') return refuse(socket, `unknown type ${frame.type}`, 'UNKNOWN_TYPE');
      const message = frame.data!.message;
      if (typeof message !== 'string') {
        const errors = [{ type: 'missing', loc: ['message'], msg: 'Field required', input: frame.data }];
        return refuse(socket, 'Invalid message', 'VALIDATION_ERROR', errors);
      }
      if (message === 'die') return socket.terminate();
      if (message === 'hang') return;
      if (message === 'refuse') return refuse(socket, 'not now', 'EXECUTION_ERROR');
      if (message === 'odd') return reply(socket, { observation: {}, reward: 'much' });
      if (message === 'text') return socket.send('hello');
      if (message === 'chatter') socket.send('{"type":"observation","data":{}}');
      steps += 1;
      reply(socket, { observation: { echoed: message, steps }, reward: 0.5, done: steps >= 3 });
    });
  });
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    frames,
    get connections() {
      return server.clients.size;
    },
    close: () =>
      new Promise(resolve => {
        for (const client of server.clients) client.terminate();
        server.close();
        http.closeAllConnections();
        http.close(() => resolve());
      }),
  };
}

function reply(socket: WebSocket, data: object): void {
  socket.send(JSON.stringify({ type: 'observation', data }));
}

function refuse(socket: WebSocket, message: string, code: string, errors?: readonly object[]): void {
  socket.send(JSON.stringify({ type: 'error', data: { message, code, errors } }));
}
