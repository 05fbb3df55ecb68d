import { finalNumber } from 'tokenloop/rewards';

/**
 * GSM8K: 1 when the number behind `####` is the right one, 0.1 for another number in the form that was asked for (a
 * small model must find the form before it can be right), else 0.
 *
 * @type {import('tokenloop/rewards').RewardFunction}
 */
export default function reward(batch) {
  return batch.map(({ text, label }) => {
    const number = finalNumber(text);
    if (number === undefined) return { reward: 0, metrics: { answered: 0, correct: 0 } };
    const correct = number === Number(label) ? 1 : 0;
    return { reward: correct ? 1 : 0.1, score: correct, metrics: { answered: 1, correct } };
  });
}
