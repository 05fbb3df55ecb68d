import { z } from 'zod';
import { options, type Values } from '../../options/option.ts';
import { SEARCH_STRATEGIES, type SearchStrategy, type TreeSearchOptions } from './tree-search.ts';

/** Attempts as trees instead of chains: see tree-search.ts. None has a default where it would have no effect. */
export const searchOptions = options({
  'agent.search.strategy': {
    schema: z.enum(SEARCH_STRATEGIES).optional(),
    help: 'Make each attempt a tree whose branches share what they have in common: branch at the first turns, at the tokens where the policy is least decided (entropy), or in the state with the highest reward so far (best-first). Without it attempts are chains',
  },
  'agent.search.branches': {
    schema: z.int().min(1).optional(),
    help: 'Answers sampled at a branch point; with entropy the chains that a tree begins with; without it 2',
  },
  'agent.search.depth': {
    schema: z.int().min(1).optional(),
    help: 'turns: the first turns, which branch; without it 2',
    unit: 'turns',
  },
  'agent.search.rounds': {
    schema: z.int().min(1).optional(),
    help: 'entropy: how often branch points are looked for; without it 1',
  },
  'agent.search.points': {
    schema: z.int().min(1).optional(),
    help: 'entropy: branch points of a round, in the whole tree; without it 2',
  },
  'agent.search.top_logprobs': {
    schema: z.int().min(0).optional(),
    help: 'entropy: log-probabilities from which the entropy of a token is estimated; 0 goes by that of the drawn token alone; without it 20',
  },
  'agent.search.budget': {
    schema: z.int().min(1).optional(),
    help: 'Nothing new is begun in a tree when so many tokens were sampled in it; best-first needs it',
    unit: 'tokens',
  },
});

/** What each strategy goes by. */
const SHAPE: Readonly<Record<SearchStrategy, readonly (keyof typeof searchOptions)[]>> = {
  turns: ['agent.search.branches', 'agent.search.depth', 'agent.search.budget'],
  entropy: [
    'agent.search.branches',
    'agent.search.rounds',
    'agent.search.points',
    'agent.search.top_logprobs',
    'agent.search.budget',
  ],
  'best-first': ['agent.search.branches', 'agent.search.budget'],
};

/**
 * The search that the options ask for; undefined where attempts are chains.
 * @throws Error for an option that would have no effect
 */
export function searchFromOptions(values: Values<typeof searchOptions>): TreeSearchOptions | undefined {
  const strategy = values['agent.search.strategy'];
  const names = Object.keys(searchOptions) as (keyof typeof searchOptions)[];
  const used = ['agent.search.strategy', ...(strategy === undefined ? [] : SHAPE[strategy])];
  const idle = names.find(name => values[name] !== undefined && !used.includes(name));
  if (idle !== undefined) {
    const why = strategy === undefined ? 'without agent.search.strategy' : `with the strategy '${strategy}'`;
    throw new Error(`${idle} has no effect ${why}; leave it out`);
  }
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
