/**
 * Arithmetic with second chances: a wrong answer may be corrected, for half the reward each time.
 *
 *   user       130+220
 *   assistant  a340        a wrong answer
 *   tool       e           is an error
 *   assistant  a350        reward 0.5
 *
 * @implements {import('tokenloop').Environment}
 */
export default class SecondChances {
  #worth = 1;

  /** @param {import('tokenloop').Task} task */
  reset({ prompt }) {
    const observation = typeof prompt === 'string' ? [{ role: 'user', content: prompt }] : prompt;
    return { observation };
  }

  /** @param {import('tokenloop/envs').Action} action */
  step({ actionText, label }) {
    if (actionText === `a${label}`) return { reward: this.#worth, done: true, metrics: { correct: 1 } };
    this.#worth /= 2;
    return { reward: 0, done: false, feedback: [{ role: 'tool', content: 'e' }], metrics: { correct: 0 } };
  }
}
