import { agentOptions } from '../agents/options.ts';
import { engineOptions, loraOptions, modelOptions } from '../engines/onnx/options.ts';
import { options } from '../options/option.ts';
import { agentChoiceOptions, dataOptions, rolloutOptions } from '../rollout/options.ts';
import { trackingOptions } from '../tracking/options.ts';
import {
  evalOptions,
  evalSamplingOptions,
  evalTasksOptions,
  rlTrainOptions,
  trainOptions,
} from '../training/options.ts';
import { compose, pick } from './compose.ts';

/** Every option of `tokenloop eval`. */
export const evaluationOptions = compose(
  pick(modelOptions, 'model.model_name_or_path', 'model.model_revision'),
  pick(loraOptions, 'ds.lora.adapter'),
  options({
    'eval.dataset': {
      schema: evalTasksOptions['eval.dataset'].schema.unwrap(),
      help: 'Tasks to evaluate on: JSONL files, each a path or name=path, under which its metrics appear',
    },
  }),
  pick(evalOptions, 'eval.max_samples'),
  evalSamplingOptions,
  pick(
    dataOptions,
    'data.input_key',
    'data.label_key',
    'data.input_template',
    'data.apply_chat_template',
    'data.on_malformed',
  ),
  agentChoiceOptions,
  agentOptions,
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
  pick(trackingOptions, 'run.dir', 'logger.episodes_enable'),
);
