import type { Generation } from '../../engines/contracts.ts';

/**
 * [n] how undecided the policy was at each token, in nats. With the log-probabilities of the most probable tokens it is
 * their part of the entropy −Σ p·ln p, plus that of the rest taken for one token: a lower bound, tight where those
 * tokens hold nearly all of the mass. Without them it is −ln p of the token that was drawn, whose mean is the entropy
 * (TreeRL's measure, https://arxiv.org/abs/2506.11902).
 */
export function uncertainty({ logprobs, topLogprobs }: Pick<Generation, 'logprobs' | 'topLogprobs'>): Float64Array {
  if (topLogprobs === undefined) return Float64Array.from(logprobs, logprob => -logprob);
  return Float64Array.from(topLogprobs, top => {
    let [entropy, mass] = [0, 0];
    for (const logprob of top.logprobs) {
      const p = Math.exp(logprob);
      entropy -= p * logprob;
      mass += p;
    }
    const rest = 1 - mass;
    return rest > 1e-9 ? entropy - rest * Math.log(rest) : entropy;
  });
}
