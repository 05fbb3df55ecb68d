import { perSample, singleTurn } from 'tokenloop';
import { exactMatch, mixedReward } from 'tokenloop/rewards';

const brief = perSample(({ text }) => 1 / (1 + text.length));
const reward = mixedReward({ right: { reward: exactMatch(), weight: 1 }, brief: { reward: brief, weight: 0.1 } });
export const agent = singleTurn({ reward });
