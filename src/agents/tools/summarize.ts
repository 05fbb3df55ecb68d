import { z } from 'zod';
import type { Tool } from '../../envs/tools/contracts.ts';

export const SUMMARIZE = 'summarize';

/** By calling it the policy folds its context: see folding.ts. */
export const summarize: Tool = {
  name: SUMMARIZE,
  description:
    'Replaces the whole conversation after the task by a summary, to make room. Call it alone; nothing else is kept.',
  parameters: z.object({
    summary: z.string().min(1).describe('What has been done and learned so far, and what is still to do'),
  }),
  execute: () => '',
};
