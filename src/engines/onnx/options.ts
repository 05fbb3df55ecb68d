import { z } from 'zod';
import type { FrozenDType } from '../../nn/frozen.ts';
import { options, type Values } from '../../options/option.ts';
import { DEVICES } from './device.ts';
import { SAMPLING_DTYPES } from './dtype.ts';
import { actorMuonOptions, criticMuonOptions, muonOptions } from './muon-options.ts';

/** A LoRA adapter over frozen weights: a new one, or the directory of one in the layout of PEFT. */
export type LoraOptions = LoraBase &
  (
    | {
        readonly rank: number;
        /** The adapter is scaled by alpha / rank; 16 when not given. */
        readonly alpha?: number | undefined;
        /** Last names of modules (`q_proj`); every linear layer of the blocks when not given. */
        readonly targetModules?: 'all-linear' | readonly string[] | undefined;
        /** Draws the adapter; 32-bit, 0 when not given. */
        readonly seed?: number | undefined;
      }
    | { readonly adapter: string }
  );

interface LoraBase {
  /** What the matrices of the frozen layers are kept in; float32 when not given. */
  readonly frozen?: FrozenDType | undefined;
}

/** Options of the embedded engine itself. */
export const engineOptions = options({
  'engine.threads': {
    schema: z.int().min(1).optional(),
    help: 'Threads of one graph run; without it all cores',
  },
  'engine.device': {
    schema: z.enum(DEVICES).default('cpu'),
    help: 'Where graphs are computed: cpu, or a GPU through webgpu or cuda; refused, with what to do, where its library or a GPU is missing',
  },
  'engine.max_rows': {
    schema: z.int().min(1).default(256),
    help: 'Sequences decoded together at most',
    unit: 'sequences',
  },
  'engine.prefill_tokens': {
    schema: z.int().min(1).default(4096),
    help: 'Prompt tokens computed at most between two decode steps; a longer prompt takes several, and rows that are ready go on meanwhile',
    unit: 'tokens',
  },
  'engine.prefix_cache_mb': {
    schema: z.number().min(0).default(256),
    help: 'Memory for keys and values of finished sequences, which later turns continue from; 0 is off',
    unit: 'MB',
  },
  'engine.deterministic': {
    schema: z.boolean().default(false),
    help: 'What a request gets does not depend, in any bit, on the requests sampled beside it; slower',
  },
  'engine.logits_mb': {
    schema: z.number().positive().default(64),
    help: 'Logits of a micro-batch that exist at a time while learning; a large vocabulary is worked through in blocks of this size',
    unit: 'MB',
  },
  'engine.save_dtype': {
    schema: z.enum(['float32', 'bfloat16']).default('float32'),
    help: 'Type of the weights of models that are written; bfloat16 halves the files and rounds. Checkpoints to continue from are exact in either case',
  },
  'train.max_tokens_per_gpu': {
    schema: z.int().min(1).default(4096),
    help: 'Tokens of a micro-batch, a shared prefix counted once; gradients do not depend on it',
    unit: 'tokens',
    aliases: ['train_max_tokens_per_gpu'],
  },
  'train.tree_packing_enable': {
    schema: z.boolean().default(true),
    help: 'Sequences of a micro-batch that begin alike (the samples of a prompt, the branches of an episode) share the tokens they begin with, forward and backward; gradients do not depend on it',
  },
});

/** How the policy is sampled from, in the embedded engine. */
export const samplingOptions = options({
  'rollout.dtype': {
    schema: z.enum(SAMPLING_DTYPES).default('float32'),
    help: 'What the matrices of the policy are multiplied in when it is sampled from; int8 quantises them after each update. Log-probs are those of the distribution that was sampled from',
  },
});

/** How `rl` divides the threads where sampler and learner have threads of their own. */
export const separateOptions = options({
  'engine.sampler_threads': {
    schema: z.int().min(1).optional(),
    help: 'Threads of the sampler where it has its own (train.async_enable, or train.colocate_all false); without it what the learner leaves of engine.threads, or half of them',
  },
  'engine.learner_threads': {
    schema: z.int().min(1).optional(),
    help: 'Threads of the learner where it has its own; without it what the sampler leaves of engine.threads',
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

const checkpointing = {
  schema: z.boolean().default(false),
  help: 'Keep only what goes into each layer, and compute the rest anew on the way back: less memory, a third more time',
} as const;

const revision = {
  schema: z.string().min(1).optional(),
  help: 'Branch, tag or commit of a model that is fetched from the hub; without it its main branch',
} as const;

/** LoRA: an adapter is trained, and the weights of the checkpoint are frozen. */
export const loraOptions = options({
  'ds.load_in_4bit': {
    schema: z.boolean().default(false),
    help: 'With LoRA: the matrices of the frozen layers in 4 bits (NF4 in blocks of 64, as in QLoRA), in learning and sampling; embedding and vocabulary stay in float32',
    aliases: ['load_in_4bit'],
  },
  'ds.load_in_8bit': {
    schema: z.boolean().default(false),
    help: 'With LoRA: the matrices of the frozen layers in 8 bits (127 levels a side of the largest magnitude of each output), in learning and sampling',
    aliases: ['load_in_8bit'],
  },
  'ds.lora.rank': {
    schema: z.int().min(0).default(0),
    help: 'Rank of the LoRA adapter that is trained over frozen weights; 0 trains all weights',
    aliases: ['lora_rank'],
  },
  'ds.lora.alpha': {
    schema: z.number().positive().optional(),
    help: 'The adapter is scaled by alpha / rank; without it 16',
    aliases: ['lora_alpha'],
  },
  'ds.lora.target_modules': {
    schema: z.union([z.literal('all-linear'), z.array(z.string().min(1)).min(1)]).optional(),
    help: 'Modules that are adapted, of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj (Phi-3: qkv_proj, o_proj, gate_up_proj, down_proj); without it all-linear, all of them',
    aliases: ['target_modules', 'lora_target_modules'],
  },
  'ds.lora.dropout': {
    schema: z
      .number()
      .refine(value => value === 0, '0: dropout in adapters is not implemented; leave it out')
      .optional(),
    help: 'Only 0, for there is no dropout',
    aliases: ['lora_dropout'],
  },
  'ds.lora.adapter': {
    schema: z.string().min(1).optional(),
    help: 'Directory of a LoRA adapter in the layout of PEFT, on top of the checkpoint: training goes on from it, with its rank, alpha and modules',
  },
});

/** Of commands that only sample. */
export const adapterOptions = {
  'ds.load_in_4bit': loraOptions['ds.load_in_4bit'],
  'ds.load_in_8bit': loraOptions['ds.load_in_8bit'],
  'ds.lora.adapter': loraOptions['ds.lora.adapter'],
};

/** The adapter that is sampled with, on a base as it was learnt on. Throws for options that do not go together. */
export function adapterFromOptions(values: Values<typeof adapterOptions>): LoraOptions | undefined {
  const { 'ds.lora.adapter': adapter } = values;
  const frozen = frozenFromOptions(values);
  if (adapter !== undefined) return { adapter, frozen };
  if (frozen === undefined) return undefined;
  throw new Error(
    `${LOAD_IN[frozen]} keeps what is below an adapter in fewer bits, and there is none: set ds.lora.adapter, or leave it out (rollout.dtype int8 samples any model in 8 bits)`,
  );
}

/** What the options say about LoRA; `seed` draws a new adapter. Throws for options that do not go together. */
export function loraFromOptions(values: Values<typeof loraOptions>, seed: number): LoraOptions | undefined {
  const { 'ds.lora.rank': rank, 'ds.lora.alpha': alpha, 'ds.lora.adapter': adapter } = values;
  const targetModules = values['ds.lora.target_modules'];
  const described = alpha !== undefined || targetModules !== undefined;
  const frozen = frozenFromOptions(values);
  if (frozen !== undefined && rank === 0 && adapter === undefined) {
    throw new Error(
      `${LOAD_IN[frozen]} keeps weights that are not trained in fewer bits, and all weights are trained: set ds.lora.rank or ds.lora.adapter`,
    );
  }
  if (adapter !== undefined) {
    if (rank === 0 && !described) return { adapter, frozen };
    throw new Error(
      'ds.lora.adapter has its own rank, alpha and modules; leave out ds.lora.rank, ds.lora.alpha and ds.lora.target_modules',
    );
  }
  if (rank > 0) return { rank, alpha, targetModules, seed: seed >>> 0, frozen };
  if (!described) return undefined;
  throw new Error('ds.lora.alpha and ds.lora.target_modules describe an adapter, and there is none: set ds.lora.rank');
}

const LOAD_IN = { nf4: 'ds.load_in_4bit', int8: 'ds.load_in_8bit' } as const;

function frozenFromOptions(values: Values<typeof adapterOptions>): FrozenDType | undefined {
  const [four, eight] = [values['ds.load_in_4bit'], values['ds.load_in_8bit']];
  if (four && eight) throw new Error('ds.load_in_4bit and ds.load_in_8bit are both on: leave one of them out');
  if (four) return 'nf4';
  return eight ? 'int8' : undefined;
}

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
  ...actorMuonOptions,
  'actor.gradient_checkpointing_enable': { ...checkpointing, aliases: ['gradient_checkpointing'] },
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
  ...criticMuonOptions,
  'critic.gradient_checkpointing_enable': {
    schema: z.boolean().optional(),
    help: `${checkpointing.help}; without it as the policy`,
  },
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
  ...muonOptions,
  'model.gradient_checkpointing_enable': { ...checkpointing, aliases: ['gradient_checkpointing'] },
});

export type EngineValues = Values<typeof engineOptions>;
