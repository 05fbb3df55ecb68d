import { z } from 'zod';
import { options } from '../../options/option.ts';

/** A server of NeMo Gym that tasks are played with. */
export const nemoGymOptions = options({
  'env.nemo_gym.url': {
    schema: z.string().min(1).optional(),
    help: 'NeMo Gym server that the tasks are played with, as in http://127.0.0.1:8000; tasks are rows of its datasets (responses_create_params and what its verifier needs)',
  },
  'env.nemo_gym.instance': {
    schema: z.string().min(1).optional(),
    help: 'Instead of its address: name of the server as the head server has it',
  },
  'env.nemo_gym.head_url': {
    schema: z.string().min(1).optional(),
    help: 'Head server that knows env.nemo_gym.instance; without it http://127.0.0.1:11000',
  },
  'env.nemo_gym.mode': {
    schema: z.enum(['tools', 'gymnasium', 'agent']).default('tools'),
    help: 'What the server is: a resources server with tools and a verifier, one in the style of Gymnasium (reset, step), or an agent server that plays whole episodes (run) and asks the policy at env.nemo_gym.model_port',
  },
  'env.nemo_gym.model_port': {
    schema: z.int().min(1).max(65_535).optional(),
    help: "With env.nemo_gym.mode agent: port on which the policy is served, that of policy_base_url in NeMo Gym's configuration",
  },
  'env.nemo_gym.model_host': {
    schema: z.string().min(1).optional(),
    help: 'Address to serve the policy on; without it 127.0.0.1',
  },
});
