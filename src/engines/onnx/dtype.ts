/** What the matrices of the policy are multiplied in when it is sampled from. */
export const SAMPLING_DTYPES = ['float32', 'int8'] as const;
export type SamplingDType = (typeof SAMPLING_DTYPES)[number];
