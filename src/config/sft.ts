import { z } from 'zod';
import { options } from '../options/option.ts';
import { dataOptions } from '../rollout/options.ts';
import { compose, pick } from './compose.ts';
import { supervisedOptions } from './supervised.ts';

/** How an example of `tokenloop sft` is read. */
export const demonstrationOptions = compose(
  pick(dataOptions, 'data.input_key'),
  options({
    'data.output_key': {
      schema: z.string().min(1).optional(),
      help: 'Column of the response; without it data.input_key holds whole conversations, of which every answer is learned',
      aliases: ['output_key'],
    },
    'model.pretrain_mode_enable': {
      schema: z.boolean().default(false),
      help: 'Learn every token of the text in data.input_key; a text longer than the window of the model is cut into several',
      aliases: ['pretrain_mode'],
    },
  }),
);

/** Every option of `tokenloop sft`. */
export const sftOptions = compose(supervisedOptions, demonstrationOptions);
