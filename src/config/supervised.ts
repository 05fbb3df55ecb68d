import { z } from 'zod';
import { engineOptions, loraOptions, modelOptions } from '../engines/onnx/options.ts';
import { options } from '../options/option.ts';
import { dataOptions, probabilities } from '../rollout/options.ts';
import { progressOptions, trackerOptions, trackingOptions } from '../tracking/options.ts';
import { scheduleOptions } from '../training/optimizer-options.ts';
import { checkpointOptions, evalOptions, heldOutOptions, sftTrainOptions, trainOptions } from '../training/options.ts';
import { compose, pick } from './compose.ts';

export const dryRunOptions = options({
  dry_run: {
    schema: z.boolean().default(false),
    help: 'Show the first examples as the model sees them, with the trained tokens marked, then counts and lengths; no weight is read and nothing is written',
    short: 'dry-run',
  },
});

/** Which rows. */
export const datasetOptions = options({
  'data.dataset': {
    schema: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    help: 'What is trained on: a file (JSONL, JSON, CSV, Parquet), a directory of them, or a dataset on the hub (organisation/name@revision:config:split); several, separated by commas, are put together',
    aliases: ['dataset'],
  },
  'data.dataset_probs': {
    schema: probabilities.optional(),
    help: 'Mix the datasets of data.dataset: the share of each in the examples that are drawn, as in 0.7,0.3; without it every row is drawn alike',
    aliases: ['dataset_probs'],
  },
  'data.dataset_split': {
    schema: z.string().min(1).optional(),
    help: 'Split of directories and hub datasets; without it train',
    aliases: ['dataset_split'],
  },
});

/** What the commands that train on the rows of a file have in common. */
export const supervisedOptions = compose(
  modelOptions,
  datasetOptions,
  pick(
    dataOptions,
    'data.column_mapping',
    'data.input_template',
    'data.apply_chat_template',
    'data.on_malformed',
    'data.max_malformed',
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
  dryRunOptions,
  pick(trackingOptions, 'run.dir'),
  progressOptions,
  trackerOptions,
);
