import { z } from 'zod';
import { options, type Values } from '../options/option.ts';
import { checkedOverlap, type Overlap, PARTIAL_CACHES, STALE_RULES } from './async.ts';

/** When sampling and learning happen, and what rests meanwhile. None has a default where it would have no effect. */
export const overlapOptions = options({
  'train.async_enable': {
    schema: z.boolean().default(false),
    help: 'Sample and learn at the same time, in threads of their own; without it in turns',
    aliases: ['async_train'],
  },
  'train.async_queue_size': {
    schema: z.int().min(1).optional(),
    help: 'Async: batches that may be under way or waiting for the trainer; without it 1',
    unit: 'batches',
    aliases: ['async_queue_size'],
  },
  'train.partial_rollout_enable': {
    schema: z.boolean().default(false),
    help: 'Async: change weights under answers that are under way, between two tokens; without it every group that was begun ends before',
    aliases: ['partial_rollout'],
  },
  'rollout.partial_cache': {
    schema: z.enum(PARTIAL_CACHES).optional(),
    help: 'Partial rollout: keys and values of answers under way stay those of the old weights (keep, which is meant without it) or are computed anew (recompute)',
  },
  'rollout.max_staleness': {
    schema: z.int().min(0).optional(),
    help: 'Async: steps that tokens may be behind the weights that train on them; without it train.async_queue_size',
    unit: 'steps',
  },
  'rollout.stale_groups': {
    schema: z.enum(STALE_RULES).optional(),
    help: 'Async: what becomes of a group that is more stale: it is left out (drop, which is meant without it) or its advantages count for less (weigh)',
  },
  'rollout.vllm_generate_batch_size': {
    schema: z.int().min(1).optional(),
    help: 'Async: tasks sampled for a batch, more than rollout.batch_size: a step trains on the groups that are complete first, and the rest goes on; without it rollout.batch_size',
    unit: 'tasks',
    aliases: ['vllm_generate_batch_size'],
  },
  'train.colocate_all': {
    schema: z.boolean().optional(),
    help: 'Sampler and learner share one set of weights and one thread; without it when they take turns',
    aliases: ['colocate_all_models'],
  },
  'vllm.enable_sleep': {
    schema: z.boolean().optional(),
    help: 'Free the caches of the sampler while the learner works; without it when they take turns',
    aliases: ['vllm_enable_sleep'],
  },
  'ds.enable_sleep': {
    schema: z.boolean().default(false),
    help: 'Free gradients and optimizer state while episodes are sampled: they wait in a temporary file',
    aliases: ['deepspeed_enable_sleep'],
  },
});

export type OverlapValues = Values<typeof overlapOptions>;

/** What rests while the other half works. */
export interface Sleep {
  readonly sampler: boolean;
  readonly learner: boolean;
}

/**
 * What the options say about the pipeline; no overlap is the sync pipeline.
 * @throws Error for options that do not go together, with the reason
 */
export function overlapFromOptions(
  values: OverlapValues,
  groups: number,
): { readonly overlap: Overlap | undefined; readonly colocated: boolean; readonly sleep: Sleep } {
  const sleep = { sampler: values['vllm.enable_sleep'], learner: values['ds.enable_sleep'] };
  if (!values['train.async_enable']) {
    refuse(values, ASYNC_ONLY, 'sampling and learning take turns: set train.async_enable, or leave it out');
    const colocated = values['train.colocate_all'] ?? true;
    return { overlap: undefined, colocated, sleep: { ...sleep, sampler: sleep.sampler ?? true } };
  }
  if (values['train.colocate_all']) {
    throw new Error(
      'train.colocate_all has no place in train.async_enable: one thread with one set of weights cannot sample and learn at the same time; leave it out',
    );
  }
  if (sleep.sampler || sleep.learner) {
    const name = sleep.sampler ? 'vllm.enable_sleep' : 'ds.enable_sleep';
    throw new Error(
      `${name} has no place in train.async_enable: sampler and learner work at the same time, and neither rests; leave it out`,
    );
  }
  const partial = values['train.partial_rollout_enable'];
  if (!partial) {
    const why =
      'nothing is changed under answers that are under way: set train.partial_rollout_enable, or leave it out';
    refuse(values, ['rollout.partial_cache'], why);
  }
  const overlap: Overlap = {
    queueSize: values['train.async_queue_size'],
    maxStaleness: values['rollout.max_staleness'],
    whenStale: values['rollout.stale_groups'],
    generateGroups: values['rollout.vllm_generate_batch_size'],
    partial: partial ? (values['rollout.partial_cache'] ?? 'keep') : undefined,
  };
  checkedOverlap(overlap, groups);
  return { overlap, colocated: false, sleep: { sampler: false, learner: false } };
}

const ASYNC_ONLY = [
  'train.async_queue_size',
  'train.partial_rollout_enable',
  'rollout.partial_cache',
  'rollout.max_staleness',
  'rollout.stale_groups',
  'rollout.vllm_generate_batch_size',
] as const;

function refuse(values: OverlapValues, names: readonly (keyof OverlapValues)[], why: string): void {
  const given = names.find(name => values[name] !== undefined && values[name] !== false);
  if (given !== undefined) throw new Error(`${given} has no effect: ${why}`);
}
