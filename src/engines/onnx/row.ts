import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { RandomGenerator } from 'pure-rand/types/RandomGenerator';
import { skipN } from 'pure-rand/utils/skipN';
import type { FinishReason } from '../../episode/episode.ts';
import { StopStrings } from '../../text/stop-strings.ts';
import type { TokenBytes } from '../../text/token-bytes.ts';
import type { Generation, SamplingParams, TopLogprobs } from '../contracts.ts';

export interface SamplerRequest {
  readonly id: number;
  readonly tokens: Int32Array;
  readonly params: SamplingParams;
  readonly seed: number;
  /** So many of the last tokens are the beginning of the answer. */
  readonly answered?: number | undefined;
  readonly streaming: boolean;
}

/** One sequence being decoded. */
export interface Row {
  readonly request: SamplerRequest;
  readonly random: RandomGenerator;
  readonly stopTokens: ReadonlySet<number>;
  readonly stopStrings: StopStrings | undefined;
  readonly sampled: number[];
  readonly logprobs: number[];
  readonly versions: number[];
  readonly top: TopLogprobs[];
  /** Number of weight changes before its keys and values were begun. */
  readonly epoch: number;
  /** The token to be fed at the next decode step. */
  next: number;
  /** The stop string that the last token completed. */
  stopString?: string | undefined;
}

/** @param tokenBytes needed by requests with stop strings */
export function newRow(request: SamplerRequest, epoch: number, tokenBytes: TokenBytes | undefined): Row {
  const random = xoroshiro128plus(request.seed | 0);
  // The generator's first outputs hardly differ between neighbouring seeds.
  skipN(random, 16);
  const { stopTokens, stopStrings: strings } = request.params;
  const stopStrings = strings.length > 0 ? new StopStrings(strings, tokenBytes!) : undefined;
  for (const token of request.tokens.subarray(request.tokens.length - (request.answered ?? 0)))
    stopStrings?.push(token);
  return {
    request,
    random,
    stopTokens: new Set(stopTokens),
    stopStrings,
    sampled: [],
    logprobs: [],
    versions: [],
    top: [],
    epoch,
    next: request.tokens.at(-1)!,
  };
}

/** Adds a sampled token to what the row has. */
export function take(row: Row, token: number, logprob: number, version: number, top?: TopLogprobs): void {
  row.sampled.push(token);
  row.logprobs.push(logprob);
  row.versions.push(version);
  if (top) row.top.push(top);
  row.next = token;
  row.stopString = row.stopStrings?.push(token);
}

export function generationOf(row: Row, finishReason: FinishReason): Generation {
  const { stopString } = row;
  return {
    tokens: Int32Array.from(row.sampled),
    logprobs: Float32Array.from(row.logprobs),
    versions: Int32Array.from(row.versions),
    finishReason,
    ...(stopString === undefined ? {} : { stopString }),
    ...(row.request.params.topLogprobs > 0 ? { topLogprobs: row.top } : {}),
  };
}

/** What a request that is aborted before it began resolves with. */
export function emptyGeneration(): Generation {
  return {
    tokens: new Int32Array(0),
    logprobs: new Float32Array(0),
    versions: new Int32Array(0),
    finishReason: 'abort',
  };
}

export function finishReason(row: Row, maxPositions: number): FinishReason | undefined {
  if (row.stopTokens.has(row.sampled.at(-1)!) || row.stopString !== undefined) return 'stop';
  const { params, tokens } = row.request;
  if (row.sampled.length >= params.maxTokens || tokens.length + row.sampled.length >= maxPositions) return 'length';
  return undefined;
}

/** A multiple of 2⁻²³ in [0, 1): times any float32 total it stays below the total, so that the draw always lands. */
export function uniform(random: RandomGenerator): number {
  return (random.next() >>> 9) / 2 ** 23;
}
