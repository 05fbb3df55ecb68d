import { singleTurn } from 'tokenloop';
import { judgeReward } from 'tokenloop/rewards';

const reward = judgeReward({
  urls: ['http://localhost:8000/v1'],
  model: 'qwen3-32b',
  key: process.env.JUDGE_KEY,
  rubric: 'Correct, and no longer than two sentences.',
});
export const agent = singleTurn({ reward });
