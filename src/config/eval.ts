import { z } from 'zod';
import { adapterOptions, engineOptions, modelOptions, samplingOptions } from '../engines/onnx/options.ts';
import { options } from '../options/option.ts';
import { dataOptions, rolloutOptions } from '../rollout/options.ts';
import { progressOptions, tracingOptions, trackingOptions } from '../tracking/options.ts';
import {
  evalOptions,
  evalSamplingOptions,
  evalTasksOptions,
  rlTrainOptions,
  trainOptions,
} from '../training/options.ts';
import { compose, pick } from './compose.ts';
import { episodeOptions } from './episodes.ts';

/** Every option of `tokenloop eval`. */
export const evaluationOptions = compose(
  options({
    'model.model_name_or_path': {
      schema: z.string().min(1).optional(),
      help: 'Whom to evaluate: directory of a Hugging Face checkpoint, its name on the hub (organisation/name), or a checkpoint of a run (runs/x/checkpoints/step-…)',
      aliases: ['pretrain'],
    },
    'eval.weights': {
      schema: z.enum(['policy', 'average']).default('policy'),
      help: 'Which weights of the checkpoint of a run: the policy or its moving average (train.enable_ema)',
    },
    'eval.endpoint': {
      schema: z.string().min(1).optional(),
      help: 'Instead of a model: base URL of an OpenAI-compatible service, as in http://localhost:8000/v1; it gives text, so answers are scored and nothing about its tokens is known',
    },
    'eval.endpoint_model': {
      schema: z.string().min(1).optional(),
      help: 'Name of the model that eval.endpoint serves',
    },
    'eval.endpoint_key_env': {
      schema: z.string().min(1).default('OPENAI_API_KEY'),
      help: 'Environment variable with the key for eval.endpoint',
    },
    'eval.env': {
      schema: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).optional(),
      help: 'Instead of a dataset and an agent: environments to play, by name, by pattern (game:*-easy) or a file of your own; agent.env_parameters go to each',
      short: 'env',
    },
    'eval.player': {
      schema: z
        .array(z.enum(['model', 'random', 'oracle']))
        .min(1)
        .optional(),
      help: 'With eval.env: who plays, the model or the scripted players of the environment; without it the model if one is named, else both scripted ones',
    },
    'eval.episodes': {
      schema: z.int().min(1).default(100),
      help: 'With eval.env: episodes of each environment and player, each with another seed, the same for every player',
      unit: 'episodes',
    },
    'eval.output': {
      schema: z.string().min(1).optional(),
      help: 'File for the result as JSON, with every task; --eval.compare reads it',
    },
    'eval.compare': {
      schema: z.array(z.string().min(1)).length(2).optional(),
      help: 'Evaluate nothing, but compare two results of eval.output, task by task',
    },
  }),
  pick(modelOptions, 'model.model_revision'),
  adapterOptions,
  options({
    'eval.dataset': {
      schema: evalTasksOptions['eval.dataset'].schema,
      help: 'Tasks to evaluate on: datasets (file, directory or organisation/name on the hub), each alone or as name=dataset, under which its metrics appear',
    },
    'eval.split': evalTasksOptions['eval.split'],
  }),
  pick(evalOptions, 'eval.max_samples'),
  evalSamplingOptions,
  pick(
    dataOptions,
    'data.column_mapping',
    'data.input_key',
    'data.label_key',
    'data.input_template',
    'data.apply_chat_template',
    'data.on_malformed',
    'data.max_malformed',
    'data.image_key',
    'data.max_images_per_prompt',
  ),
  episodeOptions,
  pick(
    rolloutOptions,
    'rollout.max_new_tokens',
    'rollout.top_p',
    'rollout.top_k',
    'rollout.min_p',
    'rollout.stop',
    'rollout.include_stop_str_in_output',
    'rollout.max_failure_rate',
  ),
  pick(trainOptions, 'train.seed'),
  pick(rlTrainOptions, 'train.full_determinism_enable'),
  engineOptions,
  samplingOptions,
  pick(trackingOptions, 'run.dir', 'logger.episodes_enable'),
  progressOptions,
  tracingOptions,
);
