import type { RewardFunction } from 'tokenloop/rewards';

declare const truePreference: RewardFunction;
export default truePreference;

/** Share of the pairs of digits that are in order; 0 for an answer that is not made of exactly these digits. */
export declare function likingOf(answer: string, digits: string): number;
