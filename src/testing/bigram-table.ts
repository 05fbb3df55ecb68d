/** A table of logits: row = the token before, column = the next token. Both have the size of the vocabulary. */
export class BigramTable {
  readonly vocabularySize: number;
  /** [V × V] row-major. */
  readonly logits: Float64Array;

  constructor(vocabularySize: number, logits = new Float64Array(vocabularySize * vocabularySize)) {
    if (logits.length !== vocabularySize ** 2) {
      throw new Error(`a table of ${vocabularySize} tokens has ${vocabularySize ** 2} logits, got ${logits.length}`);
    }
    this.vocabularySize = vocabularySize;
    this.logits = logits;
  }

  copy(): BigramTable {
    return new BigramTable(this.vocabularySize, this.logits.slice());
  }

  /** [V] log softmax(logits / temperature) of the token after `previous`. */
  logprobs(previous: number, temperature: number): Float64Array {
    const start = previous * this.vocabularySize;
    const scaled = this.logits.subarray(start, start + this.vocabularySize).map(logit => logit / temperature);
    const max = scaled.reduce((a, b) => Math.max(a, b));
    const logSum = max + Math.log(scaled.reduce((sum, logit) => sum + Math.exp(logit - max), 0));
    return scaled.map(logit => logit - logSum);
  }

  /**
   * Adds to `gradient` ([V × V]) what the log-probability of `token` after `previous`, weighted by `dLogprob`, and the
   * entropy H there, weighted by `dEntropy`, contribute:
   * d log p(token) / d z_j = (1[j = token] − p_j) / T and dH / d z_j = −p_j (log p_j + H) / T.
   */
  backward(
    gradient: Float64Array,
    at: { previous: number; token: number; temperature: number; dLogprob: number; dEntropy: number },
  ): void {
    const logprobs = this.logprobs(at.previous, at.temperature);
    const h = entropy(logprobs);
    const start = at.previous * this.vocabularySize;
    for (const [j, logprob] of logprobs.entries()) {
      const p = Math.exp(logprob);
      const dLogit = at.dLogprob * ((j === at.token ? 1 : 0) - p) - at.dEntropy * p * (logprob + h);
      gradient[start + j]! += dLogit / at.temperature;
    }
  }
}

/** Entropy in nats of a distribution given by its log-probabilities. */
export function entropy(logprobs: Float64Array): number {
  return logprobs.reduce((sum, logprob) => sum - Math.exp(logprob) * logprob, 0);
}
