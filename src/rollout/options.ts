import { z } from 'zod';
import { options } from '../options/option.ts';

/** Numbers in a list or separated by commas. */
export const probabilities = z.union([
  z
    .string()
    .regex(/^[\d.eE+-]+(,[\d.eE+-]+)*$/, 'numbers separated by commas, as in 0.7,0.3')
    .transform(text => text.split(',').map(Number)),
  z.array(z.number()),
  z.number().transform(one => [one]),
]);

/** How the columns of a dataset are read. */
export const dataOptions = options({
  'data.column_mapping': {
    schema: z.record(z.string().min(1), z.string().min(1)).optional(),
    help: 'Rename columns before anything reads them, ours to theirs, as in {id: problem_id, images: picture}; dots lead into columns, as in {label: answers.text.0}',
  },
  'data.input_key': {
    schema: z.string().min(1).default('input'),
    help: 'Column of the prompt: text, or a list of messages {role, content}; dots lead into columns, as in question.text',
    aliases: ['input_key'],
  },
  'data.label_key': {
    schema: z.string().min(1).optional(),
    help: 'Column of the label that environments and rewards compare with; without it tasks have none',
    aliases: ['label_key'],
  },
  'data.input_template': {
    schema: z.string().includes('{}').optional(),
    help: 'Text around the prompt, which takes the place of {}',
    aliases: ['input_template'],
  },
  'data.apply_chat_template': {
    schema: z.boolean().default(false),
    help: 'Make prompt text a user message, rendered by the chat template of the model, instead of feeding it as it is',
    aliases: ['apply_chat_template'],
  },
  'data.on_malformed': {
    schema: z.enum(['error', 'skip']).default('error'),
    help: 'A dataset row that cannot be read stops the run, or is left out and counted',
  },
  'data.max_malformed': {
    schema: z.int().min(0).default(100),
    help: 'With data.on_malformed skip: more such rows in a dataset stop the run all the same',
    unit: 'rows',
  },
  'data.image_key': {
    schema: z.string().min(1).default('images'),
    help: 'Column of the images of a prompt: one or a list, each a path, base64 or {bytes, path}',
    aliases: ['image_key'],
  },
  'data.max_images_per_prompt': {
    schema: z.int().min(0).default(0),
    help: 'A row with more images cannot be used; 0 leaves their column unread',
    unit: 'images',
    aliases: ['max_images_per_prompt'],
  },
  'data.max_samples': {
    schema: z.int().min(1).optional(),
    help: 'Use only so many rows from the beginning of each dataset',
    unit: 'rows',
    aliases: ['max_samples'],
  },
});

/** Which agent attempts the tasks: exactly one of agent.env, train.agent_func_path and what scores answers (reward.*). */
export const agentChoiceOptions = options({
  'agent.env': {
    schema: z.string().min(1).optional(),
    help: 'Environment by name, as in calculator or calculator@1, or a file of your own (my-env/environment.ts); the agent takes turns with it',
  },
  'agent.env_parameters': {
    schema: z.record(z.string(), z.unknown()).default({}),
    help: 'Parameters of agent.env, as in {calls: 2}; calls=2 alone means the same',
    restOf: 'agent.env',
  },
  'train.agent_func_path': {
    schema: z.string().min(1).optional(),
    help: 'JavaScript or TypeScript file whose default export is an environment class, a function that makes one, or an executor',
    aliases: ['agent_func_path'],
  },
  'reward.remote_url': {
    schema: z.string().min(1).optional(),
    help: 'What scores answers: math, code, judge, a file with a reward function, or the URLs of reward servers (http://host:port/get_reward, separated by commas)',
    aliases: ['remote_rm_url'],
  },
  'reward.mixture': {
    schema: z.record(z.string().min(1), z.number()).optional(),
    help: 'Weighted sum of several rewards, as in {math: 1, ./short.js: 0.2, model: 0.5}: each as reward.remote_url takes it, or model, the one of reward.model_name_or_path',
  },
});

/** Where tasks come from and how the policy is sampled. */
export const rolloutOptions = options({
  'data.prompt_dataset': {
    schema: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    help: 'Tasks to train on: a file (JSONL, JSON, CSV, Parquet), a directory of them, or a dataset on the hub (organisation/name@revision:config:split); several, separated by commas, are put together',
    aliases: ['prompt_data'],
  },
  'data.prompt_probs': {
    schema: probabilities.optional(),
    help: 'Mix the datasets of data.prompt_dataset: the share of each in the tasks that are drawn, as in 0.7,0.3; without it every row is drawn alike',
    aliases: ['prompt_data_probs'],
  },
  'data.prompt_split': {
    schema: z.string().min(1).optional(),
    help: 'Split of directories and hub datasets; without it train',
    aliases: ['prompt_split'],
  },
  'rollout.batch_size': {
    schema: z.int().min(1).default(16),
    help: 'Tasks (groups) sampled for one training step',
    unit: 'tasks',
    aliases: ['rollout_batch_size'],
  },
  'rollout.n_samples_per_prompt': {
    schema: z.int().min(1).default(8),
    help: 'Episodes per task, whose rewards are compared with each other',
    unit: 'episodes',
    aliases: ['n_samples_per_prompt'],
  },
  'rollout.max_new_tokens': {
    schema: z.int().min(1).optional(),
    help: 'Length of one answer; without it the rest of the window',
    unit: 'tokens',
    aliases: ['generate_max_len'],
  },
  'rollout.temperature': {
    schema: z.number().positive().default(1),
    help: 'Sampling temperature; the learner divides its logits by the same number',
    aliases: ['temperature'],
  },
  'rollout.top_p': {
    schema: z.number().positive().max(1).default(1),
    help: 'Sample from the smallest set of tokens with this probability; 1 is off and keeps training on-policy',
    aliases: ['top_p'],
  },
  'rollout.top_k': {
    schema: z.int().min(0).default(0),
    help: 'Sample from so many most probable tokens; 0 is off and keeps training on-policy',
    unit: 'tokens',
  },
  'rollout.min_p': {
    schema: z.number().min(0).lt(1).default(0),
    help: 'Sample from the tokens with at least this share of the probability of the most probable one; 0 is off and keeps training on-policy',
  },
  'rollout.stop': {
    schema: z.union([z.string().min(1), z.array(z.string().min(1))]).default([]),
    help: 'Text, or several, that end an answer, also inside of a token, beside the stop tokens of the model',
  },
  'rollout.include_stop_str_in_output': {
    schema: z.boolean().default(false),
    help: 'Environments and rewards read the answer with the stop string that ended it, not up to it; what is trained on has it always',
  },
  'rollout.oversampling': {
    schema: z.number().min(1).optional(),
    help: 'Dynamic filtering: tasks sampled for each group that is missing; what is accepted beyond the batch opens the next one. Without it 1',
    unit: 'tasks',
  },
  'rollout.max_oversampling': {
    schema: z.number().min(1).optional(),
    help: 'Dynamic filtering: a step samples at most so many times rollout.batch_size tasks, then trains on the groups it has. Without it 8',
    unit: 'batches',
  },
  'rollout.max_failure_rate': {
    schema: z.number().min(0).max(1).default(0.5),
    help: 'The run stops when a larger share of the episodes of a step fails; failed episodes are never trained on',
  },
});
