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
    // Loops, not map and reduce: whole suites of tests spend their time here.
    const start = previous * this.vocabularySize;
    const logprobs = this.logits.slice(start, start + this.vocabularySize);
    let max = -Infinity;
    for (let j = 0; j < logprobs.length; j++) {
      logprobs[j]! /= temperature;
      max = Math.max(max, logprobs[j]!);
    }
    let sum = 0;
    for (let j = 0; j < logprobs.length; j++) sum += Math.exp(logprobs[j]! - max);
    const logSum = max + Math.log(sum);
    for (let j = 0; j < logprobs.length; j++) logprobs[j]! -= logSum;
    return logprobs;
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
    for (let j = 0; j < logprobs.length; j++) {
      const logprob = logprobs[j]!;
      const p = Math.exp(logprob);
      const dLogit = at.dLogprob * ((j === at.token ? 1 : 0) - p) - at.dEntropy * p * (logprob + h);
      gradient[start + j]! += dLogit / at.temperature;
    }
  }
}

/** Entropy in nats of a distribution given by its log-probabilities. */
export function entropy(logprobs: Float64Array): number {
  let sum = 0;
  for (const logprob of logprobs) sum -= Math.exp(logprob) * logprob;
  return sum;
}
