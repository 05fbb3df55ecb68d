import { z } from 'zod';
import { options } from '../options/option.ts';

/** How long and how a training job runs; the same for every kind of job. */
export const trainOptions = options({
  'train.seed': {
    schema: z.int().min(0).default(42),
    help: 'Every random choice of the run derives from it',
  },
  'train.max_epochs': {
    schema: z.int().min(1).default(1),
    help: 'Passes over the data: over each rollout batch (rl), over the dataset (sft)',
    unit: 'passes',
    aliases: ['max_epochs'],
  },
  'train.max_steps': {
    schema: z.int().min(1).optional(),
    help: 'Stop after so many steps, and end the learning-rate schedule there',
    unit: 'steps',
  },
});

/** Options of `rl` beside those. */
export const rlTrainOptions = options({
  'train.batch_size': {
    schema: z.int().min(1).optional(),
    help: 'Episodes per optimizer update; without it all of a step, which is on-policy',
    unit: 'episodes',
    aliases: ['train_batch_size'],
  },
  'train.num_episodes': {
    schema: z.int().min(1).default(1),
    help: 'Passes over the tasks; with dynamic filtering as many steps as without, whatever is rejected',
    unit: 'passes',
    aliases: ['num_episodes'],
  },
  'train.turn_rows_enable': {
    schema: z.boolean().default(false),
    help: 'Train each turn as a row of its own, with the context it was sampled in; credit and weights stay those of the episode',
  },
  'train.full_determinism_enable': {
    schema: z.boolean().default(false),
    help: 'Same seed, same metrics and weights, whatever the order in which environments answer; turns of a step then wait for the slowest environment',
  },
});

/** Options of `sft` beside those. */
export const sftTrainOptions = options({
  'train.batch_size': {
    schema: z.int().min(1).default(32),
    help: 'Examples per optimizer update',
    unit: 'examples',
    aliases: ['train_batch_size'],
  },
});

/** The reference of the KL term. */
export const referenceOptions = options({
  'ref.update_steps': {
    schema: z.int().min(1).optional(),
    help: 'Let the reference follow the policy every so many steps; without it and ref.ema_beta it stays the initial policy',
    unit: 'steps',
  },
  'ref.ema_beta': {
    schema: z.number().min(0).lt(1).optional(),
    help: 'Share of the reference that such an update keeps: a moving average of the policy, at every step when ref.update_steps is not given; without it the policy is copied',
  },
});

/** Held-out demonstrations of `sft`. */
export const heldOutOptions = options({
  'eval.dataset': {
    schema: z.string().min(1).optional(),
    help: 'Held-out data in the formats of data.dataset, evaluated before and after training; without it there is no evaluation',
  },
  'eval.split': {
    schema: z.string().min(1).optional(),
    help: 'Split of eval.dataset where that is a directory or on the hub; without it test',
    aliases: ['eval_split'],
  },
});

const datasets = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);

/** Tasks that policies are evaluated on. */
export const evalTasksOptions = options({
  'eval.dataset': {
    schema: datasets.optional(),
    help: 'Held-out tasks: datasets as in data.prompt_dataset, each alone or as name=dataset, under which its metrics appear; evaluated before and after training. Without it there is no evaluation',
    aliases: ['eval_dataset'],
  },
  'eval.split': {
    schema: z.string().min(1).optional(),
    help: 'Split of eval.dataset where that is a directory or on the hub; without it test',
    aliases: ['eval_split'],
  },
});

export const evalOptions = options({
  'eval.max_samples': {
    schema: z.int().min(1).optional(),
    help: 'Use only so many rows from the beginning of each file of eval.dataset',
    unit: 'rows',
  },
  'eval.steps': {
    schema: z.int().min(1).optional(),
    help: 'Evaluate every so many steps, too',
    unit: 'steps',
    aliases: ['eval_steps'],
  },
});

/** How episodes of an evaluation are sampled and scored. */
export const evalSamplingOptions = options({
  'eval.temperature': {
    schema: z.number().min(0).default(0.6),
    help: 'Sampling temperature in evaluation; 0 takes the most probable token',
  },
  'eval.n_samples_per_prompt': {
    schema: z.int().min(1).default(1),
    help: 'Attempts per task; pass@k is reported for k up to this number',
    unit: 'episodes',
  },
  'eval.greedy_enable': {
    schema: z.boolean().default(false),
    help: 'One more attempt per task that takes the most probable token each time, reported as greedy_pass1',
  },
  'eval.pass_score': {
    schema: z.number().default(1),
    help: 'An attempt with at least this score has solved its task',
  },
  'eval.report': {
    schema: z.array(z.string().regex(/^[^=]+=[^=]+$/)).default(['accuracy=pass1']),
    help: 'What the live line, the final table and the result line show: label=metric of the evaluation',
  },
});

export const checkpointOptions = options({
  'ckpt.output_dir': {
    schema: z.string().min(1).optional(),
    help: 'Directory of the final model (Hugging Face layout); without it <run.dir>/model',
    aliases: ['save_path'],
  },
  'ckpt.path': {
    schema: z.string().min(1).optional(),
    help: 'Directory of resumable checkpoints; without it <run.dir>/checkpoints',
    aliases: ['ckpt_path'],
  },
  'ckpt.save_steps': {
    schema: z.int().min(1).optional(),
    help: 'Write a resumable checkpoint every so many steps; one is also written when a run is interrupted',
    unit: 'steps',
    aliases: ['save_steps'],
  },
  'ckpt.max_num': {
    schema: z.int().min(1).default(3),
    help: 'Checkpoints kept beside the best one; the oldest go first',
  },
  'ckpt.max_mem': {
    schema: z.number().positive().optional(),
    help: 'Room of all checkpoints together; the oldest go first, never the newest or the best. Without it no limit',
    unit: 'GB',
  },
  'ckpt.save_hf': {
    schema: z.boolean().default(false),
    help: 'Each checkpoint also holds the weights as a model (Hugging Face layout), in its folder model',
    aliases: ['save_hf_ckpt'],
  },
  'ckpt.load_enable': {
    schema: z.boolean().default(false),
    help: 'Continue from the newest checkpoint in ckpt.path',
    aliases: ['load_checkpoint'],
  },
});

/** Which checkpoint is the best: of `rl`, whose evaluations have several numbers. */
export const bestOptions = options({
  'ckpt.best_metric_key': {
    schema: z.string().min(1).optional(),
    help: 'Metric of evaluations, as in eval/<source>/pass1, whose best value gets a checkpoint that is kept; none = no such checkpoint. Without it the first that ends in pass1',
  },
  'ckpt.best_metric_mode': {
    schema: z.enum(['max', 'min']).default('max'),
    help: 'Whether the largest or the smallest value of ckpt.best_metric_key is the best',
  },
});

/** A moving average of the weights. */
export const averageOptions = options({
  'train.enable_ema': {
    schema: z.boolean().default(false),
    help: 'Keep an exponential moving average of the weights, moved at each update; it costs one more copy of them and is written to <model>_ema after the last step',
    aliases: ['enable_ema'],
  },
  'train.ema_beta': {
    schema: z.number().min(0).lt(1).optional(),
    help: 'Share of itself that the average keeps at each update. Without it 0.992',
    aliases: ['ema_beta'],
  },
  'eval.ema_enable': {
    schema: z.boolean().default(false),
    help: 'Evaluate the averaged weights beside the policy, as eval_ema/<source>/…',
  },
});
