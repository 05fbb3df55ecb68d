import { z } from 'zod';
import { options } from '../../options/option.ts';

/** Which registered agent talks to which registered environment over queues. */
export const queueOptions = options({
  'agent.type': {
    schema: z.string().min(1).optional(),
    help: 'Agent with queues (AReaL) by its registered name; train.agent_func_path names the file that registers it',
  },
  'agent.args': {
    schema: z.record(z.string(), z.unknown()).default({}),
    help: 'Arguments of agent.type, as in {my_param: 5.0}; my_param=5.0 alone means the same',
    restOf: 'agent.type',
  },
  'env.type': {
    schema: z.string().min(1).optional(),
    help: 'Environment service of agent.type by its registered name',
  },
  'env.args': {
    schema: z.record(z.string(), z.unknown()).default({}),
    help: 'Arguments of env.type',
  },
});
