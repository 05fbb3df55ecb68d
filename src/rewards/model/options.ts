import { z } from 'zod';
import { options } from '../../options/option.ts';

const model = z.string().min(1);

/** A reward model in this process. */
export const rewardModelOptions = options({
  'reward.model_name_or_path': {
    schema: model.optional(),
    help: 'Reward model that scores answers: directory of a checkpoint with a score head, as tokenloop rm writes it, or its name on the hub',
    aliases: ['reward_pretrain'],
  },
  'reward.model_revision': {
    schema: model.optional(),
    help: 'Branch, tag or commit of a reward model that is fetched from the hub; without it its main branch',
  },
  'reward.normalize_enable': {
    schema: z.boolean().default(false),
    help: 'Rewards are (score - mean) / std, with the mean and std that tokenloop rm wrote into config.json',
    aliases: ['normalize_reward'],
  },
  'reward.max_len': {
    schema: z.int().min(2).optional(),
    help: 'Longest text that the reward model reads, prompt and answer; of a longer one the beginning is left out, never the answer. Without it the window of the model',
    unit: 'tokens',
  },
});
