import { z } from 'zod';
import { messageOf } from '../../episode/failure.ts';
import { postJson } from '../../http/client.ts';
import { NoServerError, Servers } from '../../http/servers.ts';
import type { GenerateRequest, Generation, Sampler } from '../contracts.ts';
import { END_OF_ANSWER, readTranscript } from './transcript.ts';

export interface EndpointOptions {
  /** Base URL of an OpenAI-compatible service, as in http://localhost:8000/v1. */
  readonly url: string;
  /** Name of the served model. */
  readonly model: string;
  /** Sent as bearer token; it appears in no message. */
  readonly key?: string | undefined;
  /** Attempts per request where the service is busy (429, 5xx) or does not answer; 5 when not given. */
  readonly attempts?: number | undefined;
  /** Wait before the second attempt, doubled each time, of which a random half; 500 ms when not given. */
  readonly backoffMs?: number | undefined;
}

const ATTEMPTS = 5;
/** As long as Node's fetch waits for an answer to begin. */
const TIMEOUT_MS = 300_000;

/** No window is known, so none limits the conversation; the service says what it does not take. */
const UNBOUNDED = 2 ** 30;

const chat = z.object({
  choices: z
    .array(z.object({ message: z.object({ content: z.string().nullable() }), finish_reason: z.string().nullish() }))
    .min(1),
});
const completion = z.object({
  choices: z.array(z.object({ text: z.string(), finish_reason: z.string().nullish() })).min(1),
});

/**
 * Samples text from a service: conversations through /chat/completions, plain text through /completions. For scoring
 * answers only: tokens are bytes (transcript.ts), log-probs are 0 and stand for nothing.
 */
export function endpointSampler(options: EndpointOptions): Sampler {
  const base = options.url.replace(/\/+$/, '');
  const { attempts = ATTEMPTS, backoffMs } = options;
  // There is no other service that could do the work while this one rests.
  const servers = new Servers({ urls: [base], attempts, backoffMs, failuresToOpen: Number.POSITIVE_INFINITY });
  const request = async ({ tokens, params, seed, images = [], signal }: GenerateRequest): Promise<Generation> => {
    if (images.length > 0) throw new Error('an endpoint is sent text only; the task has images');
    const transcript = readTranscript(tokens);
    const settings = {
      model: options.model,
      temperature: params.temperature,
      ...(params.topP < 1 && { top_p: params.topP }),
      ...(params.maxTokens < UNBOUNDED / 2 && { max_tokens: params.maxTokens }),
      seed,
    };
    const isText = 'text' in transcript;
    const body = isText ? { ...settings, prompt: transcript.text } : { ...settings, messages: transcript.messages };
    const path = isText ? 'completions' : 'chat/completions';
    const answer = await post(servers, path, body, options, signal);
    const parsed = isText ? completion.safeParse(answer) : chat.safeParse(answer);
    const choice = parsed.data?.choices[0];
    if (choice === undefined) throw new Error(`${base}/${path} answered with something else than a completion`);
    const text = 'text' in choice ? choice.text : (choice.message.content ?? '');
    const cut = choice.finish_reason === 'length';
    const bytes = [...Buffer.from(text, 'utf8'), ...(cut ? [] : [END_OF_ANSWER])];
    return {
      tokens: Int32Array.from(bytes),
      logprobs: new Float32Array(bytes.length),
      versions: new Int32Array(bytes.length),
      finishReason: cut ? 'length' : 'stop',
    };
  };
  const nothing = async () => undefined;
  const refuse = async () => {
    throw new Error('an endpoint serves the weights that it has: nothing can be published to it');
  };
  return {
    contextLength: UNBOUNDED,
    version: 0,
    generate: request,
    publish: refuse,
    pause: nothing,
    resume: nothing,
    sleep: nothing,
    wake: nothing,
    close: nothing,
  };
}

/** @throws Error that ends with how many attempts were made; the signal's reason when it aborts */
async function post(
  servers: Servers,
  path: string,
  body: object,
  { key, attempts = ATTEMPTS }: EndpointOptions,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  let attempt = 0;
  try {
    return await servers.call(base => {
      attempt += 1;
      return postJson(`${base}/${path}`, body, { key, timeoutMs: TIMEOUT_MS, signal });
    }, signal);
  } catch (error) {
    signal?.throwIfAborted();
    const last = error instanceof NoServerError ? error.cause : error;
    throw new Error(`${messageOf(last)} (attempt ${attempt} of ${attempts})`, { cause: last });
  }
}
