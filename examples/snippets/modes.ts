import { multiTurn, onlyCalls, seats, toolAgent, treeSearch, withoutReasoning } from 'tokenloop';
import { defineTool, interpreterTool, makeEnvironment, nim, nimPlayer } from 'tokenloop/envs';
import { z } from 'zod';

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => String(a + b),
});
export const withTools = toolAgent({
  tools: [add],
  reward: inputs => inputs.map(({ text, label }) => (text.includes(label) ? 1 : 0)),
});

export const searching = treeSearch(makeEnvironment('guess-number'), { strategy: 'turns', branches: 2, depth: 2 });

export const folding = multiTurn(makeEnvironment('calculator'), { fold: { turns: 4 } });
export const views = multiTurn(makeEnvironment('calculator'), { keep: withoutReasoning });
export const foldingItself = toolAgent({ tools: [add], reward: () => [1], fold: { tool: true }, keep: onlyCalls });

export const lastBoard = multiTurn(makeEnvironment('game:Minesweeper-v0-easy'), { observations: { mode: 'last' } });
export const lately = multiTurn(makeEnvironment('calculator'), {
  observations: { mode: 'concat_chat', maxHistory: 2 },
  track: true,
});

export const thinkingInPython = multiTurn(makeEnvironment('game:Mastermind-v0-easy'), {
  tools: { tools: [interpreterTool({ language: 'python' })], reward: 0.05, successReward: 0.25, maxUses: 5 },
});

export const selfPlay = seats({ game: nim, seats: { first: 'policy', second: 'policy' } });
export const against = seats({ game: nim, seats: { first: 'policy', second: nimPlayer } });
