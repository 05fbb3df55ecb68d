import { z } from 'zod';
import { options } from '../options/option.ts';
import { dataOptions } from '../rollout/options.ts';
import { compose, pick } from './compose.ts';
import { supervisedOptions } from './supervised.ts';

/** Every option of `tokenloop sft`. */
export const sftOptions = compose(
  supervisedOptions,
  pick(dataOptions, 'data.input_key'),
  options({
    'data.output_key': {
      schema: z.string().min(1).optional(),
      help: 'Column of the response; without it data.input_key holds whole conversations, of which every answer is learned',
      aliases: ['output_key'],
    },
  }),
);
