/**
 * What readers of this example like, and what nobody tells the policy: digits in ascending order. Of an answer to four
 * digits the share of its six pairs that are in order, and 0 for an answer that is not made of exactly these digits.
 *
 * @type {import('tokenloop/rewards').RewardFunction}
 */
export default function truePreference(batch) {
  return batch.map(({ text, task }) => {
    const liking = likingOf(text, task.metadata.digits);
    return { reward: liking, metrics: { liking, sorted: liking === 1 ? 1 : 0 } };
  });
}

/** @param {string} answer @param {string} digits */
export function likingOf(answer, digits) {
  if ([...answer].sort().join('') !== [...digits].sort().join('')) return 0;
  let [ordered, pairs] = [0, 0];
  for (let i = 0; i < answer.length; i++) {
    for (let j = i + 1; j < answer.length; j++) {
      ordered += answer[i] < answer[j] ? 1 : 0;
      pairs += 1;
    }
  }
  return ordered / pairs;
}
