import { describe, expect, it } from 'vitest';
import { searchFromOptions } from './options.ts';

type Given = Partial<Parameters<typeof searchFromOptions>[0]>;
const read = (given: Given) => searchFromOptions(given as Parameters<typeof searchFromOptions>[0]);

describe('searchFromOptions', () => {
  it('is no search without a strategy, and what is given with one', () => {
    expect(read({})).toBeUndefined();
    expect(read({ 'agent.search.strategy': 'turns', 'agent.search.depth': 3 })).toMatchObject({
      strategy: 'turns',
      depth: 3,
      branches: undefined,
    });
  });

  it.each<[Given, string]>([
    [{ 'agent.search.branches': 4 }, 'agent.search.branches has no effect without agent.search.strategy; leave it out'],
    [
      { 'agent.search.strategy': 'entropy', 'agent.search.depth': 3 },
      "agent.search.depth has no effect with the strategy 'entropy'; leave it out",
    ],
    [
      { 'agent.search.strategy': 'best-first', 'agent.search.budget': 9, 'agent.search.rounds': 2 },
      "agent.search.rounds has no effect with the strategy 'best-first'; leave it out",
    ],
  ])('refuses %o', (given, message) => {
    expect(() => read(given)).toThrow(message);
  });
});
