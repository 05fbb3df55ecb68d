/**
 * This package by its names, for TypeScript of the user's that is loaded without being installed beside it; and the same
 * instance of it, so that what a file registers is known here.
 */
export const OWN_PACKAGE = {
  tokenloop: () => import('../index.ts'),
  'tokenloop/onnx': () => import('../engines/onnx/index.ts'),
  'tokenloop/envs': () => import('../envs/index.ts'),
  'tokenloop/rewards': () => import('../rewards/index.ts'),
  'tokenloop/algorithms': () => import('../algorithms/index.ts'),
  'tokenloop/testing': () => import('../testing/index.ts'),
} as const;
