import { z } from 'zod';
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
  /** Wait before the second attempt, doubled each time; 500 ms when not given. */
  readonly backoffMs?: number | undefined;
}

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
    const answer = await post(`${base}/${path}`, body, options, signal);
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

async function post(
  url: string,
  body: object,
  { key, attempts = 5, backoffMs = 500 }: EndpointOptions,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    let problem: string;
    let retry = true;
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify(body),
        ...(signal ? { signal } : {}),
      });
      if (response.ok) return await response.json();
      problem = `${response.status} ${(await response.text()).slice(0, 300)}`;
      retry = response.status === 429 || response.status >= 500;
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      problem = String((error as Error).cause ?? error);
    }
    if (!retry || attempt >= attempts) throw new Error(`${url}: ${problem.trim()} (attempt ${attempt} of ${attempts})`);
    await pause(backoffMs * 2 ** (attempt - 1), signal);
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms);
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    signal?.addEventListener('abort', stop, { once: true });
  });
}
