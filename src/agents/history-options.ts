import { z } from 'zod';
import { options, type Values } from '../options/option.ts';
import { type FoldOptions, type HistoryOptions, onlyCalls, withoutReasoning } from './folding.ts';
import type { MultiTurnOptions } from './multi-turn.ts';
import { OBSERVATION_MODES } from './observations.ts';

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
  'agent.observation': {
    schema: z.enum(['full', ...OBSERVATION_MODES]).default('full'),
    help: 'What the policy sees on its turn: the conversation as it was (full), the last observation alone, or what the observation wrappers of GEM make of the turns so far; where that is less than all, each turn is a row of its own in training',
  },
  'agent.max_history_length': {
    schema: z.int().min(1).optional(),
    help: 'The modes concat* of agent.observation show the last so many answers and one observation more',
    unit: 'answers',
  },
  'agent.episode_tracking': {
    schema: z.boolean().default(false),
    help: 'Measure episode_return, episode_length (answers) and episode_seconds of each episode with an environment',
  },
});

/** What the options ask for, without the keys that are not asked for. @throws Error for a history that is not shown */
export function historyFromOptions(
  values: Values<typeof historyOptions>,
): HistoryOptions & Pick<MultiTurnOptions, 'observations' | 'track'> {
  const { 'agent.observation': mode, 'agent.max_history_length': maxHistory } = values;
  if (maxHistory !== undefined && !mode.startsWith('concat')) {
    throw new Error(
      `agent.max_history_length is for the modes concat* of agent.observation, which is ${mode}; leave it out`,
    );
  }
  const fold: FoldOptions = {
    turns: values['agent.fold.turns'],
    tokens: values['agent.fold.tokens'],
    request: values['agent.fold.request'],
    tool: values['agent.fold.tool'],
  };
  const keep = HISTORIES[values['agent.history']];
  const isFolded = Object.values(fold).some(value => value !== undefined);
  return {
    ...(isFolded ? { fold } : {}),
    ...(keep ? { keep } : {}),
    ...(mode === 'full' ? {} : { observations: { mode, maxHistory } }),
    ...(values['agent.episode_tracking'] ? { track: true } : {}),
  };
}
