import { hash } from 'node:crypto';
import { z } from 'zod';
import { explain } from '../../episode/explain.ts';
import { messageOf } from '../../episode/failure.ts';
import { HttpFailure, postJson } from '../../http/client.ts';
import { Servers, type ServersOptions } from '../../http/servers.ts';
import { perSample, type RewardFunction } from '../contracts.ts';
import { AskedOnce } from './once.ts';
import { readScore } from './parse.ts';
import { Slots } from './slots.ts';
import { questionOf } from './template.ts';

export interface JudgeOptions extends ServersOptions {
  /** Base URLs of OpenAI-compatible services that all serve the model, as in http://localhost:8000/v1. */
  readonly urls: readonly string[];
  readonly model: string;
  /** Sent as bearer token; it appears in no message. */
  readonly key?: string | undefined;
  /** What counts, in words; how well the task is done when not given. */
  readonly rubric?: string | undefined;
  /** Question with {prompt}, {answer}, {label}, {rubric}, {min} and {max}; that of template.ts when not given. */
  readonly template?: string | undefined;
  /** Lowest score, a reward of 0; 0 when not given. */
  readonly min?: number | undefined;
  /** Highest score, a reward of 1; 10 when not given. */
  readonly max?: number | undefined;
  /** 0 when not given. */
  readonly temperature?: number | undefined;
  /** Scores kept, so that an equal question is asked once; 10 000 when not given, 0 asks every time. */
  readonly cacheSize?: number | undefined;
  /** Questions under way at each service; 8 when not given. */
  readonly concurrency?: number | undefined;
  /** Milliseconds until a request is given up; 120 000 when not given. */
  readonly timeoutMs?: number | undefined;
}

interface ChatMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

const completion = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullish() }) })).min(1),
});
/** Characters of an answer without a score that the judge is shown when it is asked again. */
const SHOWN = 2000;

/**
 * A language model grades answers: reward (score − min) / (max − min), in [0, 1]. An answer of the judge without a score
 * in its range fails that attempt; after `attempts` the sample fails and has no reward. Metrics: `judge_score`, as the
 * judge gave it, and `judge_cached`, 1 where an equal question had been asked.
 */
export function judgeReward(options: JudgeOptions): RewardFunction {
  const { model, key, min = 0, max = 10, temperature = 0, cacheSize = 10_000, concurrency = 8 } = options;
  const { timeoutMs = 120_000, urls } = options;
  if (!(Number.isFinite(min) && Number.isFinite(max) && min < max)) {
    throw new Error(`the scores of a judge need min < max, got ${min} and ${max}`);
  }
  if (!(Number.isInteger(concurrency) && concurrency >= 1 && Number.isInteger(cacheSize) && cacheSize >= 0)) {
    throw new Error(`concurrency is a whole number ≥ 1, cacheSize one ≥ 0, got ${concurrency} and ${cacheSize}`);
  }
  const question = questionOf(options.template, options.rubric, { min, max });
  const servers = new Servers({ ...options, urls: urls.map(chatUrl) });
  const slots = new Slots(concurrency * urls.length);
  const scores = new AskedOnce<number>(cacheSize);

  const ask = async (asked: string, signal: AbortSignal): Promise<number> => {
    let messages: readonly ChatMessage[] = [{ role: 'user', content: asked }];
    return servers.call(async url => {
      const text = readText(url, await postJson(url, { model, messages, temperature }, { key, timeoutMs, signal }));
      try {
        return readScore(text, { min, max });
      } catch (error) {
        messages = askedAgain(asked, text, messageOf(error));
        throw new HttpFailure(`${url}: the judge's answer: ${messageOf(error)}`, {
          retryable: true,
          answered: true,
          cause: error,
        });
      }
    }, signal);
  };
  return perSample(async input => {
    const asked = question(input);
    const { value: score, cached } = await scores.get(
      hash('sha256', asked),
      signal => slots.run(() => ask(asked, signal), signal),
      input.signal,
    );
    return {
      reward: (score - min) / (max - min),
      metrics: { judge_score: score, judge_cached: cached ? 1 : 0 },
    };
  });
}

/** A judge that is sure of itself would answer the same question alike: it is told what was missing. */
function askedAgain(asked: string, text: string, problem: string): ChatMessage[] {
  const first: ChatMessage = { role: 'user', content: asked };
  if (text.trim() === '') return [first];
  return [
    first,
    { role: 'assistant', content: text.slice(-SHOWN) },
    { role: 'user', content: `That cannot be read: ${problem}. Give the score again, in the form that was asked for.` },
  ];
}

/** @throws HttpFailure for what is no chat completion: another server may do better */
function readText(url: string, answer: unknown): string {
  const parsed = completion.safeParse(answer);
  if (parsed.success) return parsed.data.choices[0]!.message.content ?? '';
  throw new HttpFailure(`${url}: no chat completion: ${explain(parsed.error, answer)}`, { retryable: true });
}

/** URLs appear in messages, so nothing secret may stand in them. */
function chatUrl(base: string): string {
  const url = URL.canParse(base) ? new URL(base) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    const shown = url ? `${url.protocol}//${url.host}${url.pathname}` : base;
    throw new Error(
      `the URL of a judge, ${shown}, must be as http://localhost:8000/v1: no user, no password, nothing behind ? or #`,
    );
  }
  return `${base.replace(/\/+$/, '')}/chat/completions`;
}
