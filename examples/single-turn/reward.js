/**
 * Mental arithmetic: 1 for the right number, less the further away it is, 0 for anything that is not an answer
 * (`a` and a whole number), such as a call of the calculator, which nobody answers here.
 *
 * @type {import('tokenloop/rewards').RewardFunction}
 */
export default function reward(batch) {
  return batch.map(({ text, label }) => {
    if (!/^a-?\d{1,6}$/.test(text)) return { reward: 0, metrics: { answered: 0, correct: 0 } };
    const error = Math.abs(Number(text.slice(1)) - Number(label));
    return { reward: 1 / (1 + error), metrics: { answered: 1, correct: error === 0 ? 1 : 0 } };
  });
}
