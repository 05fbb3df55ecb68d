import { z } from 'zod';
import { options, type Values } from '../options/option.ts';
import { type FoldOptions, type HistoryOptions, onlyCalls, withoutReasoning } from './folding.ts';

const HISTORIES = { full: undefined, 'without-reasoning': withoutReasoning, calls: onlyCalls } as const;

/** What later turns see of earlier ones, where the policy takes turns with an environment or with tools: see folding.ts. */
export const historyOptions = options({
  'agent.fold.turns': {
    schema: z.int().min(1).optional(),
    help: 'Ask the policy for a summary after so many answers, and go on with the task and that summary in a new segment',
    unit: 'turns',
  },
  'agent.fold.tokens': {
    schema: z.int().min(1).optional(),
    help: 'The same, when so many tokens are in the context',
    unit: 'tokens',
  },
  'agent.fold.request': {
    schema: z.string().min(1).optional(),
    help: 'How the policy is asked for the summary; without it a sentence in English',
  },
  'agent.fold.tool': {
    schema: z.boolean().optional(),
    help: 'Tool agents: offer a tool summarize beside the others, by which the policy folds its context itself',
  },
  'agent.history': {
    schema: z.enum(Object.keys(HISTORIES) as [keyof typeof HISTORIES]).default('full'),
    help: 'What later turns see of an answer: all of it, not what it thought, or its tool calls alone; where that is less than all, each turn is a row of its own in training',
  },
});

/** The history that the options ask for, without the keys that are not asked for. */
export function historyFromOptions(values: Values<typeof historyOptions>): HistoryOptions {
  const fold: FoldOptions = {
    turns: values['agent.fold.turns'],
    tokens: values['agent.fold.tokens'],
    request: values['agent.fold.request'],
    tool: values['agent.fold.tool'],
  };
  const keep = HISTORIES[values['agent.history']];
  const isFolded = Object.values(fold).some(value => value !== undefined);
  return { ...(isFolded ? { fold } : {}), ...(keep ? { keep } : {}) };
}
