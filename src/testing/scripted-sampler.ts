import type { GenerateRequest, Generation, Learner, Sampler, TopLogprobs } from '../engines/contracts.ts';
import { checkSampling } from '../engines/sampling.ts';
import type { FinishReason } from '../episode/episode.ts';
import type { TextCodec } from '../text/renderer.ts';
import { byteRenderer } from './byte-tokenizer.ts';

export interface ScriptedToken {
  readonly token: number;
  readonly logprob: number;
  /** [V] of the distribution that it was drawn from: what requests that ask for the most probable tokens are given. */
  readonly distribution?: ArrayLike<number>;
}

export interface ScriptedSamplerOptions {
  /**
   * The answer to a request; `index` counts requests by arrival. Text is encoded and followed by the request's first
   * stop token; tokens are taken as they are, one by one when they are sampled, so a generator can follow the weights.
   * An error that it throws is what `generate` rejects with.
   */
  readonly answers: (request: GenerateRequest, index: number) => string | Iterable<number | ScriptedToken>;
  /** Encodes answers given as text, knows the vocabulary, and finds stop strings; the byte tokenizer by default. */
  readonly codec?: Pick<TextCodec, 'encode' | 'vocabularySize'> & Partial<Pick<TextCodec, 'decode'>>;
  /** Log-probability of tokens that come without; that of a uniform choice from the vocabulary by default. */
  readonly logprob?: (token: number, request: GenerateRequest) => number;
  /** Tokens; 4096 by default. */
  readonly contextLength?: number;
  /** Answers wait for `advance` and `finish`, so the test decides in which order and at which version they come. */
  readonly gated?: boolean;
  readonly onPublish?: (learner: Learner) => void;
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
  readonly script: Iterator<number | ScriptedToken>;
  readonly sampled: { token: number; logprob: number; version: number; top: TopLogprobs | undefined }[];
  /** Tokens it may have sampled by now. */
  allowed: number;
  readonly end: (reason: FinishReason, stopString?: string) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * A sampler that says what a script says. It keeps the contract of a real one: the first stop token or string ends an
 * answer, `maxTokens` and the context length cut it (`length`; so does the end of a script that has no stop token), an abort
 * gives what there is, a pause holds every request, and every token carries the version served when it was sampled.
 */
export function scriptedSampler(options: ScriptedSamplerOptions): ScriptedSampler {
  const { answers, codec = byteRenderer(), contextLength = 4096, gated = false, onPublish } = options;
  const logprob = options.logprob ?? (() => -Math.log(codec.vocabularySize));
  const requests: GenerateRequest[] = [];
  const flights = new Map<number, Flight>();
  const waiting: { count: number; resolve: () => void }[] = [];
  let state: 'running' | 'paused' | 'asleep' | 'closed' = 'running';
  let version = 0;

  const scriptOf = (request: GenerateRequest, index: number): Iterator<number | ScriptedToken> => {
    const answer = answers(request, index);
    const tokens =
      typeof answer === 'string' ? [...codec.encode(answer), ...request.params.stopTokens.slice(0, 1)] : answer;
    return tokens[Symbol.iterator]();
  };

  const sample = (flight: Flight) => {
    const { request, script, sampled } = flight;
    const { maxTokens, stopTokens, topLogprobs } = request.params;
    const room = Math.min(maxTokens, contextLength - request.tokens.length);
    try {
      while (state === 'running' && sampled.length < flight.allowed) {
        const { value, done } = script.next();
        if (done) return flight.end('length');
        const scripted = typeof value === 'number' ? { token: value, logprob: logprob(value, request) } : value;
        const { token } = scripted;
        const top = topLogprobs > 0 ? mostProbable(scripted, topLogprobs) : undefined;
        sampled.push({ token, logprob: scripted.logprob, version, top });
        request.onToken?.(token);
        if (stopTokens.includes(token)) return flight.end('stop');
        const answer = request.tokens.subarray(request.tokens.length - (request.answered ?? 0));
        const stopString = stopIn([...answer, ...sampled.map(({ token }) => token)], request.params.stopStrings);
        if (stopString !== undefined) return flight.end('stop', stopString);
        if (sampled.length === room) return flight.end('length');
      }
    } catch (error) {
      flight.fail(error);
    }
  };

  const stopIn = (tokens: readonly number[], stopStrings: readonly string[]): string | undefined => {
    if (stopStrings.length === 0) return undefined;
    const text = codec.decode!(tokens, { special: true });
    const ends = stopStrings.flatMap(stop =>
      text.includes(stop) ? [{ stop, end: text.indexOf(stop) + stop.length }] : [],
    );
    return ends.sort((a, b) => a.end - b.end || b.stop.length - a.stop.length)[0]?.stop;
  };

  const flightOf = (index: number): Flight => {
    const flight = flights.get(index);
    if (flight === undefined) throw new Error(`request ${index} is not in flight; in flight: [${[...flights.keys()]}]`);
    return flight;
  };

  const generate = (request: GenerateRequest): Promise<Generation> =>
    new Promise((resolve, reject) => {
      checkRequest(request, codec, contextLength);
      if (state === 'asleep' || state === 'closed') throw new Error(`the sampler is ${state}`);
      const index = requests.push(request) - 1;
      for (const wait of waiting) if (wait.count === requests.length) wait.resolve();
      const { signal } = request;
      const script = scriptOf(request, index);
      const leave = () => {
        flights.delete(index);
        signal?.removeEventListener('abort', abort);
      };
      const flight: Flight = {
        request,
        script,
        sampled: [],
        allowed: gated ? 0 : Number.POSITIVE_INFINITY,
        end(finishReason, stopString) {
          leave();
          resolve({
            tokens: Int32Array.from(flight.sampled, s => s.token),
            logprobs: Float32Array.from(flight.sampled, s => s.logprob),
            versions: Int32Array.from(flight.sampled, s => s.version),
            finishReason,
            ...(stopString === undefined ? {} : { stopString }),
            ...(request.params.topLogprobs > 0 ? { topLogprobs: flight.sampled.map(s => s.top!) } : {}),
          });
        },
        fail(error) {
          leave();
          reject(error);
        },
      };
      const abort = () => flight.end('abort');
      flights.set(index, flight);
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort, { once: true });
      // Not before the caller holds the promise, as no engine answers at once.
      if (!gated) queueMicrotask(() => flights.has(index) && sample(flight));
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
    async arrived(count) {
      if (requests.length >= count) return;
      await new Promise<void>(resolve => {
        waiting.push({ count, resolve });
      });
    },
    advance(index, count) {
      const flight = flightOf(index);
      flight.allowed += count;
      sample(flight);
    },
    finish(index) {
      const flight = flightOf(index);
      flight.allowed = Number.POSITIVE_INFINITY;
      sample(flight);
    },
    async publish(learner) {
      version = learner.version;
      onPublish?.(learner);
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

/** A token without a distribution is all that is known of it. */
function mostProbable({ token, logprob, distribution }: ScriptedToken, count: number): TopLogprobs {
  const all: [number, number][] = distribution
    ? Array.from(distribution, (value, id) => [id, value])
    : [[token, logprob]];
  const best = all.sort(([a, x], [b, y]) => y - x || a - b).slice(0, count);
  return { tokens: Int32Array.from(best, ([id]) => id), logprobs: Float32Array.from(best, ([, value]) => value) };
}

/** Throws on a request that a real engine would refuse. */
function checkRequest(
  { tokens, params, seed }: GenerateRequest,
  { vocabularySize, decode }: NonNullable<ScriptedSamplerOptions['codec']>,
  contextLength: number,
): void {
  if (tokens.length === 0) throw new Error('a request needs at least one token');
  if (tokens.length >= contextLength) {
    throw new Error(`a prompt of ${tokens.length} tokens leaves no room in a context of ${contextLength}`);
  }
  const foreign = tokens.find(token => token < 0 || token >= vocabularySize);
  if (foreign !== undefined) throw new Error(`token ${foreign} is outside the vocabulary of ${vocabularySize}`);
  checkSampling(params, vocabularySize, seed);
  if (params.stopStrings.length > 0 && decode === undefined) {
    throw new Error('stop strings need a codec that decodes; give one to the scripted sampler');
  }
}
