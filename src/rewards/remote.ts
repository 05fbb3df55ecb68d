import { messageOf } from '../episode/failure.ts';
import { HttpFailure, postJson } from '../http/client.ts';
import { Servers, type ServersOptions } from '../http/servers.ts';
import { readRewardAnswer } from './answer.ts';
import type { RewardFunction, RewardInput, RewardOutput } from './contracts.ts';
import { Batcher } from './model/batcher.ts';

export interface RemoteRewardOptions extends ServersOptions {
  /** Sent as bearer token. */
  readonly key?: string | undefined;
  /** Answers sent in one request at most; 16 when not given. */
  readonly maxBatch?: number | undefined;
  /** How long an answer waits for others while nothing is under way, in milliseconds; 2 when not given. */
  readonly maxWaitMs?: number | undefined;
  /** Requests under way at each server; 4 when not given. */
  readonly concurrency?: number | undefined;
  /** Milliseconds until a request is given up; 180 000 when not given. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Scores by one or several HTTP servers that speak OpenRLHF's protocol: `POST {"query", "prompts", "labels"}`, answered
 * with `{"rewards", "scores"?, "extra_logs"?}`. Answers of different episodes travel together; each request goes to the
 * server with the fewest under way (Servers). An answer that no server scores is a failure of its episode.
 */
export function remoteReward(options: RemoteRewardOptions): RewardFunction {
  const { key, maxBatch = 16, maxWaitMs = 2, concurrency = 4, timeoutMs = 180_000 } = options;
  const servers = new Servers(options);
  const ask = (batch: readonly RewardInput[], signal?: AbortSignal): Promise<RewardOutput[]> => {
    const body = {
      query: batch.map(({ query }) => query),
      prompts: batch.map(({ prompt }) => prompt),
      labels: batch.map(({ label }) => label),
    };
    return servers.call(
      async url => read(url, await postJson(url, body, { key, timeoutMs, signal }), batch.length),
      signal,
    );
  };
  const batcher = new Batcher<RewardInput, Settled>(
    async batch => {
      try {
        return (await ask(batch)).map(value => ({ value }));
      } catch (error) {
        // What a server refuses may be one answer's fault: each is asked about alone.
        if (batch.length === 1 || !(error instanceof HttpFailure)) return batch.map(() => ({ error }));
        return Promise.all(
          batch.map(input =>
            ask([input], input.signal).then(
              ([value]) => ({ value: value! }),
              (reason: unknown) => ({ error: reason }),
            ),
          ),
        );
      }
    },
    { maxBatch, maxWaitMs, maxQueue: Number.MAX_SAFE_INTEGER, concurrency: concurrency * options.urls.length },
  );
  return async inputs => {
    for (const { signal } of inputs) signal.throwIfAborted();
    const settled = await batcher.all(inputs);
    return settled.map(result => {
      if ('value' in result) return result.value;
      throw result.error;
    });
  };
}

type Settled = { readonly value: RewardOutput } | { readonly error: unknown };

/** @throws HttpFailure for an answer that is none: another server may do better */
function read(url: string, answer: unknown, count: number): RewardOutput[] {
  try {
    return readRewardAnswer(answer, count);
  } catch (error) {
    throw new HttpFailure(`${url}: ${messageOf(error)}`, { retryable: true, cause: error });
  }
}
