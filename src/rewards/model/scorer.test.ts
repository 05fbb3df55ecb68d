import { describe, expect, it } from 'vitest';
import type { LearnerBatch } from '../../engines/contracts.ts';
import { byteRenderer } from '../../testing/byte-tokenizer.ts';
import { rewardScorer } from './scorer.ts';

const renderer = byteRenderer();
const end = renderer.stopTokens[0]!;
/** Says how many tokens stand before the place it is asked about, and remembers them. */
function counting(contextLength = 64) {
  const read: number[][] = [];
  const critic = {
    contextLength,
    values: async ({ sequences }: LearnerBatch) =>
      sequences.map(({ tokens, predict }) => {
        const place = predict.indexOf(1);
        read.push([...tokens.subarray(0, place)]);
        return Float32Array.of(place);
      }),
  };
  return { critic, read };
}

describe('rewardScorer', () => {
  it('scores behind the token that ends an answer, written out or not', async () => {
    const { critic, read } = counting();
    const score = rewardScorer({ critic, renderer });
    expect(await score(['ab', 'abc'])).toEqual([3, 4]);
    expect(read).toEqual(['ab', 'abc'].map(text => [...renderer.encode(text), end]));
    const written = renderer.decode([...renderer.encode('ab'), end], { special: true });
    expect(await score([written])).toEqual([3]);
    expect(await score([])).toEqual([]);
  });

  it('keeps the end of a text that is too long', async () => {
    const { critic, read } = counting();
    expect(await rewardScorer({ critic, renderer, maxTokens: 3 })(['prompt and answer'])).toEqual([3]);
    expect(read[0]).toEqual([...renderer.encode('er'), end]);
    const narrow = counting(5);
    expect(await rewardScorer({ critic: narrow.critic, renderer })(['prompt and answer'])).toEqual([4]);
  });

  it('normalises', async () => {
    const { critic } = counting();
    expect(await rewardScorer({ critic, renderer, normalize: { mean: 1, std: 2 } })(['ab'])).toEqual([1]);
  });

  it.each([
    [{ maxTokens: 1 }, /at least 2 tokens, got 1; let it read longer texts/],
    [{ normalize: { mean: 0, std: 0 } }, /standard deviation of 0/],
    [{ renderer: { ...renderer, stopTokens: [] } }, /no end-of-sequence token/],
  ])('refuses %j', (more, message) => {
    expect(() => rewardScorer({ critic: counting().critic, renderer, ...more })).toThrow(message);
  });
});
