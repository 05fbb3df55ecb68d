import { z } from 'zod';
import { options, type Values } from '../../config/option.ts';

/** Options of the embedded engine itself. */
export const engineOptions = options({
  'engine.threads': {
    schema: z.int().min(1).optional(),
    help: 'Threads of one graph run; without it all cores',
  },
  'engine.max_rows': {
    schema: z.int().min(1).default(256),
    help: 'Sequences decoded together at most',
    unit: 'sequences',
  },
  'engine.prefill_tokens': {
    schema: z.int().min(1).default(4096),
    help: 'Prompt tokens computed between two decode steps at most',
    unit: 'tokens',
  },
  'engine.prefix_cache_mb': {
    schema: z.number().min(0).default(256),
    help: 'Memory for keys and values of finished sequences, which later turns continue from; 0 is off',
    unit: 'MB',
  },
  'train.max_tokens_per_gpu': {
    schema: z.int().min(1).default(4096),
    help: 'Tokens of a micro-batch, padding included; gradients do not depend on it',
    unit: 'tokens',
    aliases: ['train_max_tokens_per_gpu'],
  },
});

const adam = {
  betas: {
    schema: z.tuple([z.number().min(0).lt(1), z.number().min(0).lt(1)]).default([0.9, 0.95]),
    help: 'Decay rates of the running means of the gradient and of its square',
  },
  eps: { schema: z.number().positive().default(1e-8), help: 'Added to the denominator of the update' },
  weight_decay: { schema: z.number().min(0).default(0), help: 'Decoupled weight decay per unit of learning rate' },
} as const;
const maxNorm = { schema: z.number().positive().default(1), help: 'The global norm of the gradient is clipped to it' };

const revision = {
  schema: z.string().min(1).optional(),
  help: 'Branch, tag or commit of a model that is fetched from the hub; without it its main branch',
} as const;

/** The policy of `rl` and its optimizer. */
export const actorOptions = options({
  'actor.model_name_or_path': {
    schema: z.string().min(1),
    help: 'The policy: directory of a Hugging Face checkpoint, or its name on the hub (organisation/name)',
    aliases: ['pretrain'],
  },
  'actor.model_revision': revision,
  'actor.adam.betas': adam.betas,
  'actor.adam.eps': adam.eps,
  'actor.adam.weight_decay': adam.weight_decay,
  'actor.max_norm': maxNorm,
});

const critic = <T>({ schema, help }: { readonly schema: z.ZodDefault<z.ZodType<T>>; readonly help: string }) => ({
  schema: schema.unwrap().optional(),
  help: `${help}; without it ${[schema.parse(undefined)].flat().join(' ')}`,
});

/** The value model of `rl` and its optimizer. None has a default here, so that a critic nobody asked for is noticed. */
export const criticModelOptions = options({
  'critic.model_name_or_path': {
    schema: z.string().min(1).optional(),
    help: 'gae: the value model, a directory or a name on the hub like the policy; one without a value head gets one that says 0. Without it actor.model_name_or_path',
    aliases: ['critic_pretrain'],
  },
  'critic.model_revision': revision,
  'critic.adam.betas': critic(adam.betas),
  'critic.adam.eps': critic(adam.eps),
  'critic.adam.weight_decay': critic(adam.weight_decay),
  'critic.max_norm': critic(maxNorm),
});

/** The model of `sft` and its optimizer. */
export const modelOptions = options({
  'model.model_name_or_path': {
    schema: z.string().min(1),
    help: 'The model: directory of a Hugging Face checkpoint (for sft also of a configuration and a tokenizer alone, to start from scratch), or its name on the hub (organisation/name)',
    aliases: ['pretrain'],
  },
  'model.model_revision': revision,
  'adam.betas': adam.betas,
  'adam.eps': adam.eps,
  'adam.weight_decay': adam.weight_decay,
  max_norm: maxNorm,
});

export type EngineValues = Values<typeof engineOptions>;
