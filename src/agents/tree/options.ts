import { z } from 'zod';
import { options, type Values } from '../../options/option.ts';
import { SEARCH_STRATEGIES, type TreeSearchOptions } from './tree-search.ts';

/** Attempts as trees instead of chains: see tree-search.ts. */
export const searchOptions = options({
  'agent.search.strategy': {
    schema: z.enum(SEARCH_STRATEGIES).optional(),
    help: 'Make each attempt a tree whose branches share what they have in common: branch at the first turns, at the tokens where the policy is least decided (entropy), or in the state with the highest reward so far (best-first). Without it attempts are chains',
  },
  'agent.search.branches': {
    schema: z.int().min(1).default(2),
    help: 'Answers sampled at a branch point; with entropy the chains that a tree begins with',
  },
  'agent.search.depth': {
    schema: z.int().min(1).default(2),
    help: 'turns: the first turns, which branch',
    unit: 'turns',
  },
  'agent.search.rounds': {
    schema: z.int().min(1).default(1),
    help: 'entropy: how often branch points are looked for',
  },
  'agent.search.points': {
    schema: z.int().min(1).default(2),
    help: 'entropy: branch points of a round, in the whole tree',
  },
  'agent.search.top_logprobs': {
    schema: z.int().min(0).default(20),
    help: 'entropy: log-probabilities from which the entropy of a token is estimated; 0 goes by that of the drawn token alone',
  },
  'agent.search.budget': {
    schema: z.int().min(1).optional(),
    help: 'Nothing new is begun in a tree when so many tokens were sampled in it; best-first needs it',
    unit: 'tokens',
  },
});

/** The search that the options ask for; undefined where attempts are chains. */
export function searchFromOptions(values: Values<typeof searchOptions>): TreeSearchOptions | undefined {
  const strategy = values['agent.search.strategy'];
  if (strategy === undefined) return undefined;
  return {
    strategy,
    branches: values['agent.search.branches'],
    depth: values['agent.search.depth'],
    rounds: values['agent.search.rounds'],
    points: values['agent.search.points'],
    topLogprobs: values['agent.search.top_logprobs'],
    budget: values['agent.search.budget'],
  };
}
