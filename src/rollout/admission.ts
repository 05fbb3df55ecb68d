import type { GenerateRequest, Generation, Sampler } from '../engines/contracts.ts';

/** One live episode's way to the sampler. */
export interface Lane {
  generate(request: GenerateRequest): Promise<Generation>;
  /** Waits for something that another live episode gives back: meanwhile the others need not wait for this one. */
  aside<T>(wait: () => PromiseLike<T>): Promise<T>;
  /** The episode has ended and will ask no more. */
  leave(): void;
}

/** Decides when the requests of live episodes reach the sampler. */
export interface Admission {
  /** Announces a live episode. All episodes that run together join before the first of them starts. */
  join(): Lane;
}

/** Every request goes to the sampler at once. */
export function immediate(sampler: Pick<Sampler, 'generate'>): Admission {
  return {
    join: () => ({
      generate: request => sampler.generate(request),
      aside: async wait => wait(),
      leave: () => undefined,
    }),
  };
}

interface Waiting {
  readonly lane: number;
  readonly request: GenerateRequest;
  readonly release: () => void;
}

/**
 * Requests wait until every live episode has one (or has left) and the sampler is idle; then all of them are submitted
 * in one tick, in the order of their keys. What a request gets then does not depend on the order in which environments
 * answer, provided that an episode that asks several times at once does so in one tick. The price is that a round of
 * turns waits for its slowest environment. Episodes that stand aside are not waited for; where they do, the order in
 * which others give back decides who is in which round.
 */
export function lockstep(sampler: Pick<Sampler, 'generate'>): Admission {
  const live = new Set<number>();
  /** How many waits each lane stands aside for. */
  const aside = new Map<number, number>();
  const inFlight = { count: 0 };
  let waiting: Waiting[] = [];
  let lanes = 0;

  const submit = async (request: GenerateRequest): Promise<Generation> => {
    inFlight.count += 1;
    try {
      return await sampler.generate(request);
    } finally {
      inFlight.count -= 1;
      releaseIfComplete();
    }
  };

  const releaseIfComplete = () => {
    const asking = new Set(waiting.map(({ lane }) => lane));
    if (waiting.length === 0 || inFlight.count > 0 || [...live].some(lane => !asking.has(lane) && !aside.has(lane)))
      return;
    const round = waiting.sort((a, b) => (a.request.key < b.request.key ? -1 : 1));
    waiting = [];
    for (const { release } of round) release();
  };

  const enqueue = (lane: number, request: GenerateRequest): Promise<Generation> =>
    new Promise((resolve, reject) => {
      const { signal } = request;
      const entry: Waiting = {
        lane,
        request,
        release: () => {
          signal?.removeEventListener('abort', withdraw);
          submit(request).then(resolve, reject);
        },
      };
      const withdraw = () => {
        waiting = waiting.filter(other => other !== entry);
        resolve(nothing());
      };
      if (signal?.aborted) return resolve(nothing());
      signal?.addEventListener('abort', withdraw, { once: true });
      waiting.push(entry);
      releaseIfComplete();
    });

  return {
    join() {
      const lane = lanes++;
      live.add(lane);
      return {
        generate: async request => {
          if (!live.has(lane)) throw new Error(`request ${request.key} comes after its episode has ended`);
          return enqueue(lane, request);
        },
        async aside(wait) {
          aside.set(lane, (aside.get(lane) ?? 0) + 1);
          releaseIfComplete();
          try {
            return await wait();
          } finally {
            const left = aside.get(lane)! - 1;
            if (left > 0) aside.set(lane, left);
            else aside.delete(lane);
          }
        },
        leave() {
          live.delete(lane);
          releaseIfComplete();
        },
      };
    },
  };
}

/** What a request that is aborted before it began resolves with. */
function nothing(): Generation {
  return {
    tokens: new Int32Array(0),
    logprobs: new Float32Array(0),
    versions: new Int32Array(0),
    finishReason: 'abort',
  };
}
