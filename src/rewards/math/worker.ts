import { parentPort } from 'node:worker_threads';
import type { FromWorker } from './pool.ts';
import { type MathVerdict, type VerifyOptions, verifyMath } from './verify.ts';

/** Entry of a verifier's thread: one verdict for each answer. */

export interface VerifyJob {
  readonly text: string;
  readonly label: string;
  readonly options: VerifyOptions;
}

const port = parentPort;
if (port === null) throw new Error('this file is the entry of a verifier thread; it does nothing on its own');
const post = (message: FromWorker<MathVerdict>) => port.postMessage(message);
port.on('message', ({ text, label, options }: VerifyJob) => {
  let message: FromWorker<MathVerdict>;
  try {
    message = { type: 'result', result: verifyMath(text, label, options) };
  } catch (error) {
    message = { type: 'failed', error: error instanceof Error ? error : new Error(String(error)) };
  }
  post(message);
});
post({ type: 'ready' });
