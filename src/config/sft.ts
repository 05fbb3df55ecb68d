import { z } from 'zod';
import { engineOptions, loraOptions, modelOptions } from '../engines/onnx/options.ts';
import { options } from '../options/option.ts';
import { dataOptions } from '../rollout/options.ts';
import { progressOptions, trackerOptions, trackingOptions } from '../tracking/options.ts';
import { scheduleOptions } from '../training/optimizer-options.ts';
import { checkpointOptions, evalOptions, heldOutOptions, sftTrainOptions, trainOptions } from '../training/options.ts';
import { compose, pick } from './compose.ts';

/** Every option of `tokenloop sft`. */
export const sftOptions = compose(
  modelOptions,
  options({
    'data.dataset': {
      schema: z.string().min(1),
      help: 'Demonstrations: a JSONL file, one object a line',
      aliases: ['dataset'],
    },
    'data.output_key': {
      schema: z.string().min(1).optional(),
      help: 'Column of the response; without it data.input_key holds whole conversations, of which every answer is learned',
      aliases: ['output_key'],
    },
  }),
  pick(
    dataOptions,
    'data.input_key',
    'data.input_template',
    'data.apply_chat_template',
    'data.on_malformed',
    'data.max_samples',
  ),
  trainOptions,
  sftTrainOptions,
  scheduleOptions,
  loraOptions,
  heldOutOptions,
  evalOptions,
  checkpointOptions,
  engineOptions,
  pick(trackingOptions, 'run.dir'),
  progressOptions,
  trackerOptions,
);
