import { z } from 'zod';
import { options } from '../options/option.ts';

/** How the reward `code` judges. */
export const codeRewardOptions = options({
  'reward.code.language': {
    schema: z.enum(['python', 'javascript']).optional(),
    help: 'Language of the programs that the reward code tests; python when not given',
  },
  'reward.code.credit': {
    schema: z.enum(['all', 'share']).optional(),
    help: 'What the reward code gives: 1 for passing every test, or the share of tests that pass; all when not given',
  },
  'reward.code.deadline': {
    schema: z.int().min(50).optional(),
    help: 'Time for all tests of one answer; tests beyond it fail; 20000 when not given',
    unit: 'ms',
  },
  'reward.code.sandbox': {
    schema: z.record(z.string(), z.unknown()).optional(),
    help: 'Limits of the sandbox of the reward code, as in {timeoutMs: 2000, memoryMiB: 512}; isolation: none runs programs with your own rights',
  },
});
