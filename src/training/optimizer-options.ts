import { z } from 'zod';
import { options } from '../options/option.ts';
import { SCHEDULES } from './schedule.ts';

const scheduler = {
  schema: z.enum(SCHEDULES).default('cosine_with_min_lr'),
  help: 'How the learning rate changes after the warm-up',
};
const warmupRatio = {
  schema: z.number().min(0).max(1).default(0.03),
  help: 'Share of the updates over which the learning rate rises from 0',
};
const minLrRatio = {
  schema: z.number().min(0).max(1).default(0.1),
  help: 'Where cosine_with_min_lr ends, as a share of the highest learning rate',
};

/** The policy's learning rate in reinforcement learning. */
export const actorScheduleOptions = options({
  'actor.adam.lr': {
    schema: z.number().positive().default(1e-6),
    help: 'Highest learning rate; 1e-6 suits pretrained models, tiny ones take 1e-4 to 1e-3',
    aliases: ['actor_learning_rate'],
  },
  'actor.lr_scheduler': scheduler,
  'actor.lr_warmup_ratio': warmupRatio,
  'actor.min_lr_ratio': minLrRatio,
});

/** How the critic learns. None has a default here, so that a critic nobody asked for is noticed. */
export const criticOptions = options({
  'critic.adam.lr': {
    schema: z.number().positive().optional(),
    help: 'gae: highest learning rate of the critic; without it 9e-6',
    aliases: ['critic_learning_rate'],
  },
  'critic.lr_scheduler': { schema: z.enum(SCHEDULES).optional(), help: `${scheduler.help}; without it as the policy` },
  'critic.lr_warmup_ratio': {
    schema: z.number().min(0).max(1).optional(),
    help: `${warmupRatio.help}; without it as the policy`,
  },
  'critic.min_lr_ratio': {
    schema: z.number().min(0).max(1).optional(),
    help: `${minLrRatio.help}; without it as the policy`,
  },
  'critic.value_clip': {
    schema: z.number().min(0).optional(),
    help: 'Keeps one update from moving a value further than this; 0 sets no bound, without it 0.5',
    aliases: ['value_clip'],
  },
  'critic.freezing_steps': {
    schema: z.int().min(0).optional(),
    help: 'In the first so many steps only the critic learns, while the schedule of the policy runs on; without it 0',
    unit: 'steps',
    aliases: ['freezing_actor_steps'],
  },
  'critic.save_value_network': {
    schema: z.boolean().optional(),
    help: 'Write the critic beside the final model, as <its directory>_critic; without it not',
    aliases: ['save_value_network'],
  },
});

/** The learning rate of supervised jobs. */
export const scheduleOptions = options({
  'adam.lr': {
    schema: z.number().positive().default(5e-6),
    help: 'Highest learning rate; 5e-6 suits pretrained models, tiny ones take 1e-3 to 3e-3',
    aliases: ['learning_rate'],
  },
  lr_scheduler: scheduler,
  lr_warmup_ratio: warmupRatio,
  min_lr_ratio: minLrRatio,
});
