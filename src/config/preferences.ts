import { z } from 'zod';
import { PAIRWISE_TYPES } from '../algorithms/losses/pairwise.ts';
import { options } from '../options/option.ts';
import { compose } from './compose.ts';
import { supervisedOptions } from './supervised.ts';

/** Columns of a dataset of pairs. */
export const preferenceDataOptions = options({
  'data.prompt_key': {
    schema: z.string().min(1).optional(),
    help: 'Column of the prompt; without it the columns of the answers hold it, too, as conversations or as whole texts',
    aliases: ['prompt_key'],
  },
  'data.chosen_key': {
    schema: z.string().min(1).default('chosen'),
    help: 'Column of the better answer: text, or a list of messages {role, content} that ends with it',
    aliases: ['chosen_key'],
  },
  'data.rejected_key': {
    schema: z.string().min(1).default('rejected'),
    help: 'Column of the worse answer, in the form of the better one',
    aliases: ['rejected_key'],
  },
});

/** Every option of `tokenloop rm`. */
export const rmOptions = compose(
  supervisedOptions,
  preferenceDataOptions,
  options({
    'model.loss_type': {
      schema: z.enum(PAIRWISE_TYPES).default('sigmoid'),
      help: 'Loss of a pair: sigmoid = -log σ(chosen - rejected - margin), logexp = log(1 + exp(rejected - chosen))',
      aliases: ['loss'],
    },
    'model.margin_loss_enable': {
      schema: z.boolean().default(false),
      help: 'Read by how much the chosen answer is better from data.margin_key; a row without it has 0',
      aliases: ['margin_loss'],
    },
    'data.margin_key': {
      schema: z.string().min(1).default('margin'),
      help: 'Column of the margin, with model.margin_loss_enable',
    },
  }),
);

/** Every option of `tokenloop dpo`. */
export const dpoOptions = compose(
  supervisedOptions,
  preferenceDataOptions,
  options({
    'model.beta': {
      schema: z.number().positive().default(0.1),
      help: 'How strongly the policy is held to the reference',
      aliases: ['beta'],
    },
    'model.label_smoothing': {
      schema: z.number().min(0).lt(0.5).default(0),
      help: 'cDPO: share of the pairs that are taken to be labelled the wrong way round',
      aliases: ['label_smoothing'],
    },
    'model.ipo_enable': {
      schema: z.boolean().default(false),
      help: 'The squared loss of IPO in place of the logistic one',
      aliases: ['ipo'],
    },
    'model.length_norm_enable': {
      schema: z.boolean().optional(),
      help: 'Compare answers by the mean log-prob of their tokens instead of the sum; without it only with model.ipo_enable, as its authors computed it',
    },
    'model.nll_loss_coef': {
      schema: z.number().min(0).default(0),
      help: 'Weight of the negative log-likelihood of the chosen answers',
      aliases: ['nll_loss_coef'],
    },
    'ref.model_name_or_path': {
      schema: z.string().min(1).optional(),
      help: 'The reference: a directory or a name on the hub; without it the policy as it was before training, whose base is shared under LoRA',
      aliases: ['ref_pretrain'],
    },
  }),
);
