import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beginEvents, eventText } from '../src/agents/recorded/events.ts';
import { recordedAgent } from '../src/agents/recorded/recorded-agent.ts';
import type { Generation } from '../src/engines/contracts.ts';
import { byteRenderer } from '../src/testing/byte-tokenizer.ts';
import { testContext } from '../src/testing/executor-context.ts';
import { type Cell, Report } from './harness.ts';

const CLIENTS = 256;
const TURNS = 8;
const TOKENS = 64;
const ROUNDS = 3;

/**
 * The recorder with 256 clients at the same time, each a conversation of 8 streamed answers of 64 tokens, on an engine
 * that takes no time; beside a bare HTTP server that streams as many events of the same text and does nothing else.
 * Clients and server share one process in both cases.
 */
export async function run(): Promise<void> {
  const report = new Report('recorder');
  const bare = { latencies: [] as number[], seconds: 0 };
  const own = { latencies: [] as number[], seconds: 0 };
  // The first round is there to warm up.
  for (let round = 0; round <= ROUNDS; round++) {
    const isCounted = round > 0;
    for (const [into, play] of [
      [bare, playBare],
      [own, playRecorded],
    ] as const) {
      const { latencies, seconds } = await play();
      if (!isCounted) continue;
      into.latencies.push(...latencies);
      into.seconds += seconds;
    }
  }
  const row = (name: string, { latencies, seconds }: typeof bare): Cell[] => [
    name,
    quantile(latencies, 0.5),
    quantile(latencies, 0.99),
    (latencies.length * TOKENS) / seconds,
  ];
  const added = (q: number) => quantile(own.latencies, q) - quantile(bare.latencies, q);
  const rows = [row('bare HTTP server', bare), row('recorder', own), ['added', added(0.5), added(0.99), '']];
  const title = `${CLIENTS} streaming clients at the same time, ${TURNS} turns of ${TOKENS} tokens`;
  report.add({ title, columns: ['server', 'p50 in ms', 'p99 in ms', 'tokens/s'], rows });
  report.save();
}

interface Played {
  /** ms */
  readonly latencies: readonly number[];
  readonly seconds: number;
}

type Message = { readonly role: string; readonly content: string };

/** One conversation: each answer is read to its end, then continued. */
async function converse(url: string, key: string, agent: Agent, latencies: number[]): Promise<void> {
  const messages: Message[] = [{ role: 'user', content: 'a question' }];
  for (let turn = 0; turn < TURNS; turn++) {
    const start = performance.now();
    const content = await stream(`${url}/chat/completions`, key, { model: 'policy', stream: true, messages }, agent);
    latencies.push(performance.now() - start);
    messages.push({ role: 'assistant', content }, { role: 'user', content: 'more' });
  }
}

function stream(url: string, key: string, body: unknown, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const sent = httpRequest(url, { method: 'POST', agent, headers }, response => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        const pieces = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece);
        if (response.statusCode === 200) resolve(pieces.join(''));
        else reject(new Error(text));
      });
    });
    sent.on('error', reject);
    sent.end(JSON.stringify(body));
  });
}

async function playBare(): Promise<Played> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      beginEvents(response);
      const chunk = (content: string) => ({
        id: 'chatcmpl-0123456789abcdef',
        object: 'chat.completion.chunk',
        created: 0,
        model: 'policy',
        choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
      });
      for (let token = 0; token < TOKENS; token++) response.write(eventText({ data: chunk('a') }));
      response.end(eventText({ data: '[DONE]' }));
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const latencies: number[] = [];
  const start = performance.now();
  await Promise.all(Array.from({ length: CLIENTS }, () => converse(url, 'key', agent, latencies)));
  const seconds = (performance.now() - start) / 1000;
  agent.destroy();
  server.closeAllConnections();
  await new Promise(resolve => server.close(resolve));
  return { latencies, seconds };
}

async function playRecorded(): Promise<Played> {
  const renderer = byteRenderer();
  const tokens = Int32Array.from({ length: TOKENS }, (_, i) => (i + 1 < TOKENS ? 97 : renderer.stopTokens[0]!));
  const generation: Generation = {
    tokens,
    logprobs: new Float32Array(TOKENS).fill(-1),
    versions: new Int32Array(TOKENS),
    finishReason: 'stop',
  };
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const latencies: number[] = [];
  const executor = recordedAgent({
    run: async (_, { baseURL, apiKey }) => {
      await converse(baseURL, apiKey, agent, latencies);
      return 1;
    },
  });
  const start = performance.now();
  const episodes = await Promise.all(
    Array.from({ length: CLIENTS }, (_, sample) => {
      const context = testContext({ renderer, sample, limits: { maxTurns: TURNS, maxNewTokens: TOKENS } });
      const policy = {
        ...context.policy,
        generate: async ({ onToken }: { onToken?: ((token: number) => void) | undefined }) => {
          if (onToken !== undefined) for (const token of tokens) onToken(token);
          return generation;
        },
      };
      return executor.run({ id: String(sample), prompt: '', label: '', metadata: {} }, { ...context, policy });
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  agent.destroy();
  await executor.close?.();
  const odd = episodes.find(({ outcome, metrics }) => outcome.kind !== 'done' || metrics.recorded_replayed !== 1);
  if (odd !== undefined) throw new Error(`an episode was not recorded as it should be: ${JSON.stringify(odd.outcome)}`);
  return { latencies, seconds };
}

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
}
