import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { RandomGenerator } from 'pure-rand/types/RandomGenerator';
import { skipN } from 'pure-rand/utils/skipN';
import type { FinishReason } from '../../episode/episode.ts';
import type { Generation, SamplingParams } from '../contracts.ts';

export interface SamplerRequest {
  readonly id: number;
  readonly tokens: Int32Array;
  readonly params: SamplingParams;
  readonly seed: number;
  readonly streaming: boolean;
}

/** One sequence being decoded. */
export interface Row {
  readonly request: SamplerRequest;
  readonly random: RandomGenerator;
  readonly stop: ReadonlySet<number>;
  readonly sampled: number[];
  readonly logprobs: number[];
  readonly versions: number[];
  /** Number of weight changes before its keys and values were begun. */
  readonly epoch: number;
  /** The token to be fed at the next decode step. */
  next: number;
}

export function newRow(request: SamplerRequest, epoch: number): Row {
  const random = xoroshiro128plus(request.seed | 0);
  // The generator's first outputs hardly differ between neighbouring seeds.
  skipN(random, 16);
  return {
    request,
    random,
    stop: new Set(request.params.stopTokens),
    sampled: [],
    logprobs: [],
    versions: [],
    epoch,
    next: request.tokens.at(-1)!,
  };
}

export function generationOf(row: Row, finishReason: FinishReason): Generation {
  return {
    tokens: Int32Array.from(row.sampled),
    logprobs: Float32Array.from(row.logprobs),
    versions: Int32Array.from(row.versions),
    finishReason,
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
  if (row.stop.has(row.sampled.at(-1)!)) return 'stop';
  const { params, tokens } = row.request;
  if (row.sampled.length >= params.maxTokens || tokens.length + row.sampled.length >= maxPositions) return 'length';
  return undefined;
}

/** A multiple of 2⁻²³ in [0, 1): times any float32 total it stays below the total, so that the draw always lands. */
export function uniform(random: RandomGenerator): number {
  return (random.next() >>> 9) / 2 ** 23;
}
