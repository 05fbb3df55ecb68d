import { z } from 'zod';
import { options } from '../options/option.ts';

/** Limits of one episode, whatever the execution mode. */
export const agentOptions = options({
  'agent.max_turns': {
    schema: z.int().min(1).default(8),
    help: 'Answers of the policy in one episode; one more is not asked for and the episode ends truncated.',
    unit: 'turns',
  },
  'data.max_len': {
    schema: z.int().min(2).optional(),
    help: 'Prompt, answers and feedback of one episode together; the context length of the model when not given.',
    unit: 'tokens',
    aliases: ['max_len'],
  },
  'agent.call_timeout_ms': {
    schema: z.int().min(1).default(60_000),
    help: 'Deadline of one call to an environment, tool or reward; a call that passes it fails its episode.',
    unit: 'ms',
  },
  'agent.timeout_ms': {
    schema: z.int().min(1).default(600_000),
    help: 'Deadline of one episode of a recorded agent; its program is stopped being served and the episode fails.',
    unit: 'ms',
  },
});
