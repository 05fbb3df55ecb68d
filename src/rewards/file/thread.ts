import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../episode/failure.ts';
import { loadRewardFile } from './load.ts';
import type { FromThread, ToThread } from './protocol.ts';

/** The other end of `rewardThreads`: loads the file that `workerData` names and calls its function. Calls overlap. */
export async function runRewardThread(): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('this is the entry of the thread of a reward file; it does nothing on its own');
  const post = (message: FromThread) => port.postMessage(message);
  const reward = await loadRewardFile((workerData as { readonly path: string }).path).catch((error: unknown) => {
    const unparsed = (error as Error).cause instanceof SyntaxError;
    post({ type: 'refused', message: messageOf(error), unparsed });
  });
  if (reward === undefined) return;
  const underWay = new Map<number, AbortController>();
  port.on('message', async (message: ToThread) => {
    if (message.type === 'ping') return post({ type: 'pong' });
    const { id } = message;
    if (message.type === 'abort') return underWay.get(id)?.abort();
    const stop = new AbortController();
    underWay.set(id, stop);
    post({ type: 'begun', id });
    try {
      const scores = await reward(message.batch.map(input => ({ ...input, signal: stop.signal })));
      post({ type: 'result', id, scores });
    } catch (error) {
      post({ type: 'failed', id, error: error instanceof Error ? error : new Error(String(error)) });
    } finally {
      underWay.delete(id);
    }
  });
  post({ type: 'ready' });
}
