import { singleTurn } from 'tokenloop';
import { mathReward, verifyMath } from 'tokenloop/rewards';

const verdict = verifyMath('Half of it is $\\boxed{\\frac{1}{2}}$.', '0.5');
if (!verdict.correct) throw new Error(`expected 1/2, got ${verdict.answer}`);
export const agent = singleTurn({ reward: mathReward({ extract: ['boxed', 'hash'], deadlineMs: 1000, workers: 2 }) });
