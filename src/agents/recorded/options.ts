import { z } from 'zod';
import { options, type Values } from '../../options/option.ts';

/** How the program of a recorded agent is answered. */
export const recordedOptions = options({
  'agent.models': {
    schema: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).optional(),
    help: 'Recorded agents: names by which the program may ask for the policy; * answers to every name; without it policy',
  },
  'agent.strict': {
    schema: z.boolean().optional(),
    help: 'Recorded agents: refuse requests that ask for what cannot be kept (tool_choice required, response_format, temperature, penalties) with a 400 instead of counting them',
  },
});

/** The options of `recordedAgent` that they are, without those that are not given. */
export function recordedFromOptions(values: Values<typeof recordedOptions>) {
  const { 'agent.models': models, 'agent.strict': strict } = values;
  return {
    ...(models === undefined ? {} : { server: { models: [models].flat() } }),
    ...(strict === undefined ? {} : { strict }),
  };
}
