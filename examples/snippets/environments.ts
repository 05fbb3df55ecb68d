import { multiTurn } from 'tokenloop';
import { defineEnvironment, makeEnvironment, registerEnvironment } from 'tokenloop/envs';
import { z } from 'zod';

registerEnvironment(
  defineEnvironment({
    name: 'parity',
    version: 1,
    help: 'Say whether a number is even (e) or not (a).',
    parameters: z.strictObject({ reward: z.number().positive().default(1) }),
    make: ({ reward }) => ({
      reset: ({ prompt }) => ({ observation: prompt }),
      step: ({ actionText, label }) => ({ reward: actionText === label ? reward : 0, done: true }),
    }),
  }),
);
export const agent = multiTurn(makeEnvironment('parity@1', { reward: 2 }));
