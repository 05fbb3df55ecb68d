import { z } from 'zod';
import { options } from '../options/option.ts';

/** How reward servers are asked, where `reward.remote_url` names some. */
export const remoteRewardOptions = options({
  'reward.remote.timeout': {
    schema: z.int().min(1).optional(),
    help: 'Time until a reward server has answered, or is asked again; 180000 when not given',
    unit: 'ms',
  },
  'reward.remote.attempts': {
    schema: z.int().min(1).optional(),
    help: 'Attempts for one request, over all reward servers, before its answers fail; 5 when not given',
  },
  'reward.remote.max_batch': {
    schema: z.int().min(1).optional(),
    help: 'Answers sent to a reward server in one request at most; 16 when not given',
    unit: 'answers',
  },
  'reward.remote.concurrency': {
    schema: z.int().min(1).optional(),
    help: 'Requests under way at each reward server; 4 when not given',
    unit: 'requests',
  },
  'reward.remote.key_env': {
    schema: z.string().min(1).optional(),
    help: 'Environment variable with the key that reward servers are sent as authorization: Bearer; none when not given',
  },
});
