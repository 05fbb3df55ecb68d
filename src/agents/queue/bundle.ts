import type { Generation } from '../../engines/contracts.ts';
import type { BundledGenerationOutputs, Qid } from './contracts.ts';

/** The samples of one request as AReaL's agents know them. */
export function bundle(
  qid: Qid,
  prompt: ArrayLike<number>,
  generations: readonly Generation[],
): BundledGenerationOutputs {
  const promptIds = Array.from(prompt);
  const outputIds = generations.map(({ tokens }) => Array.from(tokens));
  const seqs = outputIds.map(output => [...promptIds, ...output]);
  const nothing = new Array<number>(Math.max(0, promptIds.length - 1)).fill(0);
  const noEos = generations.map(({ finishReason }) => finishReason === 'length');
  // An answer without tokens has no version of its own.
  const versionStart = generations.map(({ versions }) => versions[0] ?? -1);
  const versionEnd = generations.map(({ versions }) => versions.at(-1) ?? -1);
  return {
    qid,
    promptIds,
    outputIds,
    seqs,
    logprobs: generations.map(({ logprobs }) => [...nothing, ...logprobs]),
    noEos,
    versionStart,
    versionEnd,
    seqlens: seqs.map(({ length }) => length),
    promptLen: promptIds.length,
    prompt_ids: promptIds,
    output_ids: outputIds,
    no_eos: noEos,
    version_start: versionStart,
    version_end: versionEnd,
    prompt_len: promptIds.length,
  };
}
