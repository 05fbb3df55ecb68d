import type { GenerateRequest, Generation, Sampler } from '../engines/contracts.ts';
import type { FinishReason } from '../episode/episode.ts';
import type { TextCodec } from '../text/renderer.ts';
import { byteRenderer } from './byte-tokenizer.ts';

export interface ScriptedSamplerOptions {
  /**
   * The answer to a request; `index` counts requests by arrival. Text is encoded and followed by the request's first
   * stop token; tokens are taken as they are. An error that it throws is what `generate` rejects with.
   */
  readonly answers: (request: GenerateRequest, index: number) => string | ArrayLike<number>;
  /** Encodes answers given as text and knows the size of the vocabulary; the byte tokenizer by default. */
  readonly codec?: TextCodec;
  /** Log-probability of each token; that of a uniform choice from the vocabulary by default. */
  readonly logprob?: (token: number, request: GenerateRequest) => number;
  /** Tokens; 4096 by default. */
  readonly contextLength?: number;
  /** Answers wait for `advance` and `finish`, so the test decides in which order and at which version they come. */
  readonly gated?: boolean;
}

export interface ScriptedSampler extends Sampler {
  /** Every request, by arrival. */
  readonly requests: readonly GenerateRequest[];
  /** Indices of the requests that have not been answered. */
  readonly inFlight: readonly number[];
  /** Resolves when `count` requests in all have arrived. */
  arrived(count: number): Promise<void>;
  /** Lets a request sample up to `count` more tokens at the present version. */
  advance(index: number, count: number): void;
  /** Lets a request sample the rest of its answer. */
  finish(index: number): void;
}

interface Flight {
  readonly request: GenerateRequest;
  /** The whole answer, cut to what the limits allow. */
  readonly answer: Int32Array;
  /** Version of each token sampled so far. */
  readonly versions: number[];
  /** Tokens the test has let through. */
  allowed: number;
  readonly end: (reason: FinishReason) => void;
}

/**
 * A sampler that says what a script says. It keeps the contract of a real one: the first stop token ends an answer,
 * `maxTokens` and the context length cut it (`length`; so does the end of a script that has no stop token), an abort
 * gives what there is, a pause holds every request, and every token carries the version served when it was sampled.
 */
export function scriptedSampler(options: ScriptedSamplerOptions): ScriptedSampler {
  const { answers, codec = byteRenderer(), contextLength = 4096, gated = false } = options;
  const logprob = options.logprob ?? (() => -Math.log(codec.vocabularySize));
  const requests: GenerateRequest[] = [];
  const flights = new Map<number, Flight>();
  const waiting: { count: number; resolve: () => void }[] = [];
  let state: 'running' | 'paused' | 'asleep' | 'closed' = 'running';
  let version = 0;

  const script = (request: GenerateRequest, index: number): Int32Array => {
    const given = answers(request, index);
    const { stopTokens, maxTokens } = request.params;
    const tokens = typeof given === 'string' ? [...codec.encode(given), ...stopTokens.slice(0, 1)] : Array.from(given);
    const stop = tokens.findIndex(token => stopTokens.includes(token));
    const room = Math.min(maxTokens, contextLength - request.tokens.length);
    return Int32Array.from(tokens.slice(0, Math.min(room, stop < 0 ? tokens.length : stop + 1)));
  };

  const sample = (flight: Flight) => {
    if (state !== 'running') return;
    while (flight.versions.length < Math.min(flight.allowed, flight.answer.length)) {
      flight.request.onToken?.(flight.answer[flight.versions.length]!);
      flight.versions.push(version);
    }
    if (flight.versions.length < flight.answer.length) return;
    const last = flight.answer.at(-1);
    flight.end(last !== undefined && flight.request.params.stopTokens.includes(last) ? 'stop' : 'length');
  };

  const flightOf = (index: number): Flight => {
    const flight = flights.get(index);
    if (flight === undefined) throw new Error(`request ${index} is not in flight; in flight: [${[...flights.keys()]}]`);
    return flight;
  };

  const generate = (request: GenerateRequest): Promise<Generation> =>
    new Promise((resolve, reject) => {
      checkRequest(request, codec.vocabularySize, contextLength);
      if (state === 'asleep' || state === 'closed') throw new Error(`the sampler is ${state}`);
      const index = requests.push(request) - 1;
      for (const { resolve: tell } of waiting.filter(wait => wait.count === requests.length)) tell();
      const answer = script(request, index);
      const { signal } = request;
      const end = (finishReason: FinishReason) => {
        flights.delete(index);
        signal?.removeEventListener('abort', abort);
        const tokens = answer.slice(0, flight.versions.length);
        const logprobs = Float32Array.from(tokens, token => logprob(token, request));
        resolve({ tokens, logprobs, versions: Int32Array.from(flight.versions), finishReason });
      };
      const abort = () => end('abort');
      const flight: Flight = { request, answer, versions: [], allowed: gated ? 0 : answer.length, end };
      flights.set(index, flight);
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort, { once: true });
      if (gated) return;
      Promise.resolve()
        .then(() => flights.has(index) && sample(flight))
        .catch(error => {
          flights.delete(index);
          reject(error);
        });
    });

  const abortAll = () => {
    for (const flight of [...flights.values()]) flight.end('abort');
  };

  return {
    contextLength,
    requests,
    get version() {
      return version;
    },
    get inFlight() {
      return [...flights.keys()];
    },
    generate,
    arrived: count =>
      requests.length >= count
        ? Promise.resolve()
        : new Promise<void>(resolve => {
            waiting.push({ count, resolve });
          }),
    advance(index, count) {
      const flight = flightOf(index);
      flight.allowed += count;
      sample(flight);
    },
    finish(index) {
      const flight = flightOf(index);
      flight.allowed = flight.answer.length;
      sample(flight);
    },
    async publish(learner) {
      version = learner.version;
    },
    async pause({ mode }) {
      state = 'paused';
      if (mode === 'abort') abortAll();
    },
    async resume() {
      state = 'running';
      for (const flight of [...flights.values()]) sample(flight);
    },
    async sleep() {
      if (flights.size > 0) throw new Error(`cannot sleep with ${flights.size} requests in flight; pause with 'abort'`);
      state = 'asleep';
    },
    async wake() {
      state = 'running';
    },
    async close() {
      state = 'closed';
      abortAll();
    },
  };
}

/** Throws on a request that a real engine would refuse. */
export function checkRequest(request: GenerateRequest, vocabularySize: number, contextLength: number): void {
  const { tokens, params } = request;
  if (tokens.length === 0) throw new Error('a request needs at least one token');
  if (tokens.length >= contextLength) {
    throw new Error(`a prompt of ${tokens.length} tokens leaves no room in a context of ${contextLength}`);
  }
  const foreign = tokens.find(token => token < 0 || token >= vocabularySize);
  if (foreign !== undefined) throw new Error(`token ${foreign} is outside the vocabulary of ${vocabularySize}`);
  if (!(params.temperature >= 0)) throw new Error(`temperature is ${params.temperature}; it must be 0 or more`);
  if (!(params.maxTokens >= 1)) throw new Error(`maxTokens is ${params.maxTokens}; it must be 1 or more`);
}
