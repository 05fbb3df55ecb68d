import { parentPort, workerData } from 'node:worker_threads';
import { asError, EngineHost } from './host.ts';
import type { FromHost, HostOptions, ToHost } from './protocol.ts';

/** Entry of the engine's thread: connects an EngineHost to the message port. */

const port = parentPort;
if (port === null) throw new Error('this file is the entry of the engine thread; it does nothing on its own');
const post = (message: FromHost) => port.postMessage(message);
try {
  const host = new EngineHost(workerData as HostOptions, post);
  port.on('message', (message: ToHost) => host.receive(message));
  post({ type: 'ready', info: host.info });
} catch (error) {
  post({ type: 'refused', error: asError(error) });
}
