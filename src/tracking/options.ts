import { z } from 'zod';
import { options } from '../options/option.ts';

export const trackingOptions = options({
  'run.dir': {
    schema: z.string().min(1).optional(),
    help: 'Directory of the run: resolved configuration, metrics, episodes, checkpoints; none = runs/<recipe>-<time>',
  },
  'logger.logging_steps': {
    schema: z.number().int().positive().default(1),
    help: 'Plain console lines come at most this often; metrics.jsonl has every step',
    unit: 'steps',
    aliases: ['logging_steps'],
  },
  'logger.console_interval': {
    schema: z.number().min(0).default(5),
    help: 'Shortest time between two plain console lines, where the output is no terminal',
    unit: 's',
  },
  'logger.episodes_enable': {
    schema: z.boolean().default(true),
    help: 'Write every episode to episodes.jsonl',
  },
});
