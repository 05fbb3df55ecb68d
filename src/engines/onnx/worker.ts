import { parentPort, workerData } from 'node:worker_threads';
import { asError, EngineHost } from './host.ts';
import { checkDevice } from './probe.ts';
import type { FromHost, HostOptions, ToHost } from './protocol.ts';

/** Entry of the engine's thread: connects an EngineHost to the message port. */

const port = parentPort;
if (port === null) throw new Error('this file is the entry of the engine thread; it does nothing on its own');
/** An array that is the result of a call is the caller's, and goes over without a copy. */
const post = (message: FromHost) => {
  const own = message.type === 'result' && message.value instanceof Float32Array ? [message.value.buffer] : [];
  port.postMessage(message, own as ArrayBuffer[]);
};
try {
  const options = workerData as HostOptions;
  const { device = 'cpu' } = options.sampler;
  // Said at once, not when the first graph is made.
  if (device !== 'cpu') await checkDevice(device);
  const host = new EngineHost(options, post);
  port.on('message', (message: ToHost) => host.receive(message));
  post({ type: 'ready', info: host.info });
} catch (error) {
  post({ type: 'refused', error: asError(error) });
}
