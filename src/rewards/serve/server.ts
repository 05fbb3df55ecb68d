import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { explain } from '../../episode/explain.ts';
import { messageOf } from '../../episode/failure.ts';
import { parseJson, readBody } from '../../http/body.ts';
import { bearerOf, sameKey } from '../../http/key.ts';
import { type ListenOptions, listen, sendJson } from '../../http/listen.ts';
import { Refusal } from '../../http/refusal.ts';
import { Batcher, type BatchLimits, QueueFullError } from '../model/batcher.ts';
import type { Scorer } from '../model/scorer.ts';
import { Latencies, metricsPage } from './metrics.ts';

/** What OpenRLHF's clients send: `query` is prompt and answer in one text; the other columns are not needed. */
const RewardRequest = z.object({
  query: z.union([z.string(), z.array(z.string()).min(1)]),
  prompts: z.array(z.string()).nullish(),
  labels: z.array(z.unknown()).nullish(),
});

export interface RewardServerOptions extends ListenOptions, Partial<BatchLimits> {
  readonly scorer: Scorer;
  /** Who asks must know it; nobody needs one when not given. */
  readonly key?: string | undefined;
  /** Bytes of one request; 16 MiB when not given. */
  readonly maxBodyBytes?: number | undefined;
  /** What is served, for who asks. */
  readonly model?: string | undefined;
  /** Told what went wrong inside, beside the client who is told, too. */
  readonly onError?: ((message: string) => void) | undefined;
}

export interface RewardServer {
  /** Of `POST /get_reward`; /health and /metrics are beside it. */
  readonly url: string;
  /** Takes no more requests and resolves when those under way have been answered. */
  close(): Promise<void>;
}

/**
 * Serves a reward model over HTTP: `POST /get_reward` with `{"query": [texts]}` answers `{"rewards", "scores",
 * "extra_logs"}`, as OpenRLHF's serve_rm does. Texts of all requests under way are scored together.
 */
export async function serveRewards(options: RewardServerOptions): Promise<RewardServer> {
  const { scorer, key, model, maxBodyBytes = 16 * 2 ** 20, onError = () => undefined } = options;
  const { maxBatch = 64, maxWaitMs = 2, maxQueue = 65_536 } = options;
  const latencies = new Latencies();
  let refused = 0;
  let failed = 0;
  const batcher = new Batcher<string, number>(
    async texts => {
      const scores = await scorer(texts);
      const bad = scores.findIndex(score => !Number.isFinite(score));
      if (bad >= 0) throw new Error(`the reward model says ${scores[bad]} of one of the texts scored together`);
      return scores;
    },
    { maxBatch, maxWaitMs, maxQueue },
  );

  const rewards = async (request: IncomingMessage): Promise<unknown> => {
    const began = performance.now();
    const body = parseJson(await readBody(request, maxBodyBytes));
    const parsed = RewardRequest.safeParse(body);
    if (!parsed.success) throw new Refusal(400, explain(parsed.error, body));
    const { query } = parsed.data;
    const scores = await batcher.all(typeof query === 'string' ? [query] : query);
    latencies.add((performance.now() - began) / 1000);
    return { rewards: scores, scores, extra_logs: { dummy_scores: scores } };
  };
  const route = (request: IncomingMessage): unknown => {
    const { method = 'GET' } = request;
    const [path = '/'] = (request.url ?? '/').split('?');
    if (path === '/health') return { status: 'ok', ...(model && { model }) };
    if (key !== undefined && !sameKey(bearerOf(request), key)) {
      throw new Refusal(401, 'the key is missing or wrong; send it as authorization: Bearer <key>');
    }
    if (path === '/metrics') return metricsPage({ ...batcher.statistics, refused, failed, latencies });
    if (path !== '/get_reward') throw new Refusal(404, `there is nothing at ${path}; POST /get_reward scores texts`);
    if (method !== 'POST')
      throw new Refusal(405, `${method} is not allowed here; POST is`, { headers: { allow: 'POST' } });
    return rewards(request);
  };

  const listening = await listen(async (request, response) => {
    try {
      const answer = await route(request);
      if (typeof answer !== 'string') return sendJson(response, 200, answer);
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(answer);
    } catch (error) {
      const refusal = error instanceof QueueFullError ? new Refusal(429, error.message, RETRY_LATER) : error;
      if (refusal instanceof Refusal) {
        refused += 1;
        return sendJson(response, refusal.status, { error: { message: refusal.message } }, refusal.headers);
      }
      failed += 1;
      onError(messageOf(error));
      sendJson(response, 500, { error: { message: messageOf(error) } });
    }
  }, options);
  return { url: `${listening.url}/get_reward`, close: () => listening.drain() };
}

const RETRY_LATER = { headers: { 'retry-after': '1' } };
