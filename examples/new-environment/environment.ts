import { defineEnvironment, type Environment, z } from 'tokenloop/envs';

/**
 * Say the largest of some numbers. A wrong answer may be corrected, for half the reward each time.
 *
 *   user       3 9 4
 *   assistant  4
 *   user       larger
 *   assistant  9           reward 0.5
 *
 * Parameters all have defaults; raise the version when episodes are no longer comparable with earlier ones.
 */
export const definition = defineEnvironment({
  name: 'new-environment',
  version: 1,
  help: 'Say the largest of some numbers; a wrong answer may be corrected.',
  parameters: z.strictObject({
    count: z.int().min(2).max(20).default(3),
    tries: z.int().min(1).default(2),
  }),
  maxTurns: ({ tries }) => tries,
  // Who can play without a model: what learning starts from, and what it can reach.
  players: ({ count }) => ({
    random: ({ seed }) => {
      const numbers = draw(seed, count);
      const random = randomOf(~seed);
      return () => String(numbers[Math.floor(count * random())]);
    },
    oracle: ({ seed }) => {
      const answer = Math.max(...draw(seed, count));
      return () => String(answer);
    },
  }),
  make: ({ count, tries }): Environment => {
    let numbers: readonly number[] = [];
    return {
      reset(_task, { seed }) {
        numbers = draw(seed, count);
        const content = numbers.join(' ');
        return { observation: [{ role: 'user', content }], stateKey: content };
      },
      // Answers can be anything: what is not a number is a wrong answer, not an error.
      step({ actionText, turn }) {
        const said = /^\s*\d{1,9}\s*$/.test(actionText) ? Number(actionText) : undefined;
        const right = said === Math.max(...numbers);
        const content = said === undefined ? 'a number' : said < Math.max(...numbers) ? 'larger' : 'smaller';
        return {
          reward: right ? 0.5 ** turn : 0,
          done: right || turn + 1 === tries,
          feedback: [{ role: 'user', content }],
          stateKey: `${numbers.join(' ')} ${content}`,
          metrics: { invalid: said === undefined ? 1 : 0 },
        };
      },
    };
  },
});

/** Numbers below 100, the same for the same seed. */
function draw(seed: number, count: number): number[] {
  const random = randomOf(seed);
  return Array.from({ length: count }, () => Math.floor(100 * random()));
}

/** Uniform in [0, 1): mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
