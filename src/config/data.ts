import { z } from 'zod';
import { modelOptions } from '../engines/onnx/options.ts';
import { options } from '../options/option.ts';
import { dataOptions } from '../rollout/options.ts';
import { compose, pick } from './compose.ts';
import { preferenceDataOptions } from './preferences.ts';
import { demonstrationOptions } from './sft.ts';
import { datasetOptions } from './supervised.ts';

/** Every option of `tokenloop data`. */
export const dataCommandOptions = compose(
  pick(modelOptions, 'model.model_name_or_path', 'model.model_revision'),
  datasetOptions,
  options({
    'data.kind': {
      schema: z.enum(['tasks', 'demonstrations', 'pairs']).default('tasks'),
      help: 'What the rows are read as: tasks of rl and eval, demonstrations of sft, pairs of rm and dpo',
    },
    dry_run: {
      schema: z.boolean().default(false),
      help: 'Show the first examples as the model sees them, tokens included, before the counts and lengths',
      short: 'dry-run',
    },
  }),
  pick(
    dataOptions,
    'data.column_mapping',
    'data.label_key',
    'data.input_template',
    'data.apply_chat_template',
    'data.max_samples',
  ),
  demonstrationOptions,
  preferenceDataOptions,
);
