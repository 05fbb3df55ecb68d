import type { GenerateRequest, Generation, Sampler } from '../engines/contracts.ts';
import { seedOf } from './seeds.ts';

/**
 * A sampler whose pause with mode 'abort' interrupts answers without ending them: what an aborted request has is fed
 * again behind its prompt, under whatever weights are served then, until the answer ends by itself. Keys and values are
 * computed anew that way; log-probs and versions of earlier tokens stay those they were sampled with. A request that its
 * own signal aborts ends as usual. Source: AReaL's interruptible generation (Fu et al., section 4.1,
 * https://arxiv.org/abs/2505.24298).
 */
export function continuing(sampler: Sampler): Pick<Sampler, 'generate'> {
  return {
    async generate(request) {
      const parts: Generation[] = [];
      let rest: GenerateRequest = request;
      for (;;) {
        const part = await sampler.generate(rest);
        parts.push(part);
        if (part.finishReason !== 'abort' || request.signal?.aborted) return joined(parts, part.finishReason);
        const maxTokens = rest.params.maxTokens - part.tokens.length;
        const tokens = concatenated(Int32Array, [rest.tokens, part.tokens]);
        // The interruption came when the answer was as long as it may be.
        if (maxTokens === 0 || tokens.length >= sampler.contextLength) return joined(parts, 'length');
        // The stream of the first part is used up to where it was interrupted.
        const seed = seedOf(request.seed, 'continued', tokens.length);
        const answered = (rest.answered ?? 0) + part.tokens.length;
        rest = { ...rest, tokens, answered, seed, params: { ...rest.params, maxTokens } };
      }
    },
  };
}

function joined(parts: readonly Generation[], finishReason: Generation['finishReason']): Generation {
  if (parts.length === 1) return { ...parts[0]!, finishReason };
  const { stopString, topLogprobs } = parts.at(-1)!;
  return {
    tokens: concatenated(
      Int32Array,
      parts.map(({ tokens }) => tokens),
    ),
    logprobs: concatenated(
      Float32Array,
      parts.map(({ logprobs }) => logprobs),
    ),
    versions: concatenated(
      Int32Array,
      parts.map(({ versions }) => versions),
    ),
    finishReason,
    ...(stopString === undefined ? {} : { stopString }),
    ...(topLogprobs === undefined ? {} : { topLogprobs: parts.flatMap(part => part.topLogprobs ?? []) }),
  };
}

function concatenated<A extends Int32Array | Float32Array>(kind: new (length: number) => A, parts: readonly A[]): A {
  const whole = new kind(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
