import { perSample, type RewardFunction, singleTurn } from 'tokenloop';

/** Scored together: the shortest right answer of the batch earns most. */
const shortest: RewardFunction = batch => {
  const right = batch.filter(({ text, label }) => text.trim() === label);
  const length = Math.min(...right.map(({ text }) => text.length));
  return batch.map(answer => (right.includes(answer) ? length / answer.text.length : 0));
};
const exact = perSample(({ text, label }) => (text.trim() === label ? 1 : 0));
export const agents = [singleTurn({ reward: shortest }), singleTurn({ reward: exact })];
