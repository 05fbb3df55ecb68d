import type { Critic } from '../../engines/contracts.ts';
import { scoredSequence } from '../../engines/scored.ts';
import type { Renderer } from '../../text/renderer.ts';

/** Mean and standard deviation by which scores are normalised: (score − mean) / std. */
export interface Normalization {
  readonly mean: number;
  /** Above 0. */
  readonly std: number;
}

export interface ScorerOptions {
  /** A model with a value head. */
  readonly critic: Pick<Critic, 'values' | 'contextLength'>;
  /** Of the reward model's own checkpoint. */
  readonly renderer: Pick<Renderer, 'encode' | 'stopTokens'>;
  /** Scores are given as they are when not given. */
  readonly normalize?: Normalization | undefined;
  /** Longest text in tokens; of a longer one the end is read, where the answer is. The model's window when not given. */
  readonly maxTokens?: number | undefined;
}

/** Scores of texts: batch in, scores out, in the same order. */
export type Scorer = (texts: readonly string[]) => Promise<number[]>;

/**
 * Scores texts by what a reward model says behind their last token. A text is a prompt and its answer, special tokens
 * written out; it is made to end with the token that ends an answer, as the model was trained.
 */
export function rewardScorer({ critic, renderer, normalize, maxTokens }: ScorerOptions): Scorer {
  const room = Math.min(maxTokens ?? Number.POSITIVE_INFINITY, critic.contextLength - 1);
  if (!(room >= 2))
    throw new Error(`a reward model must read at least 2 tokens, got ${room}; let it read longer texts`);
  const { mean, std } = normalize ?? { mean: 0, std: 1 };
  if (!(std > 0)) throw new Error(`scores cannot be divided by a standard deviation of ${std}`);
  const [end] = renderer.stopTokens;
  if (end === undefined) throw new Error('the tokenizer names no end-of-sequence token, behind which scores are read');
  const read = (text: string): Int32Array => {
    const tokens = renderer.encode(text);
    const ended = tokens.at(-1) === end ? tokens : Int32Array.from([...tokens, end]);
    return ended.length <= room ? ended : ended.slice(-room);
  };
  return async texts => {
    if (texts.length === 0) return [];
    const sequences = texts.map(text => scoredSequence(read(text)));
    const values = await critic.values({ sequences, temperature: 1 });
    return values.map(([score]) => (score! - mean) / std);
  };
}
