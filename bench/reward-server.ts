import { Agent, request as httpRequest } from 'node:http';
import { fileURLToPath } from 'node:url';
import { onnxCritic } from '../src/engines/onnx/index.ts';
import { rewardScorer } from '../src/rewards/model/scorer.ts';
import { serveRewards } from '../src/rewards/serve/server.ts';
import { loadRenderer } from '../src/text/chat-renderer.ts';
import { type Cell, Report, THREADS } from './harness.ts';
import { MODELS, withConfig } from './models.ts';

const CLIENTS = 64;
/** Requests of each client, of one text each, and rounds of which the best counts. */
const REQUESTS = { '0.4M': 40, '25M': 6, '135M': 2 } as const;
const ROUNDS = 3;
/** Characters of a text, each a token. */
const LENGTHS = [16, 48];

/**
 * `serve-rm` under 64 clients at the same time, each with one text a request: texts of all of them scored together,
 * beside the same server that scores them one at a time (as a server does that batches inside a request only).
 */
export async function run(names: string[]): Promise<void> {
  const report = new Report('reward-server');
  const chosen = names.length > 0 ? names : ['0.4M', '25M', '135M'];
  const renderer = await loadRenderer(fileURLToPath(new URL('../examples/char-model/init', import.meta.url)));
  for (const name of chosen as (keyof typeof REQUESTS)[]) {
    const rows: Cell[][] = [];
    await withConfig(MODELS[name]!, async model => {
      const critic = await onnxCritic({ model, initSeed: 1, threads: THREADS, training: false });
      const scorer = rewardScorer({ critic, renderer });
      for (const length of LENGTHS) {
        const alone = await measure(scorer, 1, length, REQUESTS[name]);
        const together = await measure(scorer, CLIENTS, length, REQUESTS[name]);
        rows.push(
          [length, 'one at a time', alone.rate, alone.p50, alone.p99, 1],
          [length, 'together', together.rate, together.p50, together.p99, together.rate / alone.rate],
        );
      }
      await critic.close();
    });
    const columns = ['tokens', 'scored', 'texts/s', 'p50 in ms', 'p99 in ms', 'times'];
    report.add({ title: `${name}: ${CLIENTS} clients at the same time`, columns, rows });
  }
  report.save();
}

type Scorer = ReturnType<typeof rewardScorer>;

/** The best of the rounds; the first, which makes the graphs, does not count. */
async function measure(scorer: Scorer, maxBatch: number, length: number, requests: number) {
  const server = await serveRewards({ scorer, maxBatch });
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  let best = { rate: 0, p50: 0, p99: 0 };
  for (let round = 0; round <= ROUNDS; round++) {
    const latencies: number[] = [];
    const began = performance.now();
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        for (let i = 0; i < requests; i++) {
          const sent = performance.now();
          await post(server.url, textOf(length, client * requests + i), agent);
          latencies.push(performance.now() - sent);
        }
      }),
    );
    const rate = latencies.length / ((performance.now() - began) / 1000);
    if (round > 0 && rate > best.rate) best = { rate, p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) };
  }
  agent.destroy();
  await server.close();
  return best;
}

/** Digits that differ from text to text. */
function textOf(length: number, seed: number): string {
  return Array.from({ length: length - 1 }, (_, i) => (seed * 7 + i * i + i) % 10).join('');
}

function post(url: string, text: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      url,
      { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
      response => {
        response.resume();
        response.on('end', () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`the server answered ${response.statusCode}`));
        });
      },
    );
    sent.on('error', reject);
    sent.end(JSON.stringify({ query: [text] }));
  });
}

function quantile(values: readonly number[], q: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(q * (values.length - 1))]!;
}
