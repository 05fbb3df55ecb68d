import { parentPort } from 'node:worker_threads';

/** Entry of a thread of a WorkerPool that does what it is told. */
const port = parentPort!;
const hoard: number[][] = [];
port.on('message', (order: string) => {
  if (order === 'spin') for (;;);
  if (order === 'exit') process.exit(3);
  if (order === 'memory') for (;;) hoard.push(new Array<number>(1e6).fill(Math.random()));
  if (order === 'throw') port.postMessage({ type: 'failed', error: new Error('told to') });
  else port.postMessage({ type: 'result', result: order.replace('say ', '') });
});
port.postMessage({ type: 'ready' });
