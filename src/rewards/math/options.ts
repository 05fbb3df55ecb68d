import { z } from 'zod';
import { options } from '../../options/option.ts';
import { EXTRACTIONS } from './extract.ts';

/** How the reward `math` judges. */
export const mathRewardOptions = options({
  'reward.math.extract': {
    schema: z.array(z.enum(EXTRACTIONS)).min(1).optional(),
    help: 'Where the reward math looks for the answer, in this order: the last \\boxed{}, behind the last ####, behind "the answer is", the last number; all of them when not given',
  },
  'reward.math.precision': {
    schema: z.int().min(1).max(12).optional(),
    help: 'Decimal places that count where a number may have been rounded; 6 when not given',
  },
  'reward.math.deadline': {
    schema: z.int().min(1).optional(),
    help: 'Time for judging one answer; a slower one scores 0 and is counted in timed_out; 5000 when not given',
    unit: 'ms',
  },
  'reward.math.workers': {
    schema: z.int().min(1).max(64).optional(),
    help: 'Threads that judge answers; 1 when not given',
  },
});
