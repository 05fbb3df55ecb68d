import { z } from 'zod';
import { options } from '../../options/option.ts';

/** How the reward `judge` asks a language model. */
export const judgeRewardOptions = options({
  'reward.judge.url': {
    schema: z.string().min(1).optional(),
    help: 'OpenAI-compatible service whose model grades answers (http://localhost:8000/v1); several, separated by commas, share the work',
  },
  'reward.judge.model': {
    schema: z.string().min(1).optional(),
    help: 'Name of the model that reward.judge.url serves',
  },
  'reward.judge.key_env': {
    schema: z.string().min(1).optional(),
    help: 'Environment variable with the key for reward.judge.url; none when not given',
  },
  'reward.judge.rubric': {
    schema: z.string().min(1).optional(),
    help: 'What counts, in words, or @file to read them from; how well the task is done when not given',
  },
  'reward.judge.template': {
    schema: z.string().min(1).optional(),
    help: 'Question to the judge, or @file to read it from, with {prompt}, {answer}, {label}, {rubric}, {min} and {max}; a good one when not given',
  },
  'reward.judge.min': {
    schema: z.number().optional(),
    help: 'Lowest score of the judge, a reward of 0; 0 when not given',
  },
  'reward.judge.max': {
    schema: z.number().optional(),
    help: 'Highest score of the judge, a reward of 1; 10 when not given',
  },
  'reward.judge.temperature': {
    schema: z.number().min(0).optional(),
    help: 'Temperature of the judge; 0 when not given',
  },
  'reward.judge.cache_size': {
    schema: z.int().min(0).optional(),
    help: 'Scores kept, so that an equal question is asked once; 10000 when not given, 0 asks every time',
  },
  'reward.judge.concurrency': {
    schema: z.int().min(1).optional(),
    help: 'Questions under way at each service of reward.judge.url; 8 when not given',
    unit: 'requests',
  },
  'reward.judge.timeout': {
    schema: z.int().min(1).optional(),
    help: 'Time until the judge has answered, or is asked again; 120000 when not given',
    unit: 'ms',
  },
  'reward.judge.attempts': {
    schema: z.int().min(1).optional(),
    help: 'Attempts for one score before its answer fails; 5 when not given',
  },
});
