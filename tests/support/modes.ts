import { z } from 'zod';
import type { Executor } from '../../src/agents/contracts.ts';
import { multiTurn } from '../../src/agents/multi-turn.ts';
import { queueAgent } from '../../src/agents/queue/queue-agent.ts';
import { seats } from '../../src/agents/seats.ts';
import { singleTurn } from '../../src/agents/single-turn.ts';
import { toolAgent } from '../../src/agents/tools/tool-agent.ts';
import { SEARCH_STRATEGIES, treeSearch } from '../../src/agents/tree/tree-search.ts';
import type { Environment } from '../../src/envs/contracts.ts';
import { defineTool } from '../../src/envs/tools/define.ts';
import type { ToolDialect } from '../../src/text/tool-calls/dialect.ts';

const worth = (text: string) => (text.startsWith('a') ? 1 : 0);

/** Three turns; an answer that begins with a earns 1. Messages where the conversation is to be rewritten. */
const letters =
  (messages = false) =>
  (): Environment => {
    const words = (content: string) => (messages ? [{ role: 'user', content }] : content);
    return {
      reset: ({ prompt }) => ({ observation: words(String(prompt)), stateKey: 's0' }),
      step: ({ actionText, turn }) => ({
        reward: worth(actionText),
        done: turn === 2,
        feedback: words('!'),
        stateKey: `s${turn + 1}`,
      }),
    };
  };

/** An answer that begins with b is a call: what a policy of three letters can say. */
const lettersDialect: ToolDialect = {
  name: 'letters',
  parse: answer => ({
    content: answer,
    reasoning: undefined,
    calls: answer.startsWith('b') ? [{ kind: 'call', name: 't', arguments: {} }] : [],
  }),
  instructions: () => '',
  result: ({ content }) => ({ role: 'user', content }),
  stopStrings: [],
};

/** Every execution mode that runs in this process, small enough for a policy of three letters. */
export const MODES: Readonly<Record<string, () => Executor>> = {
  'single-turn': () => singleTurn({ reward: inputs => inputs.map(({ text }) => worth(text)) }),
  'multi-turn': () => multiTurn(letters()),
  'multi-turn, folded': () => multiTurn(letters(true), { fold: { turns: 1 } }),
  'multi-turn, single-turn views': () => multiTurn(letters(true), { keep: content => content.slice(0, 1) }),
  tool: () => {
    const executor = toolAgent({
      tools: [defineTool({ name: 't', description: 't', parameters: z.object({}), execute: () => '' })],
      reward: inputs => inputs.map(({ text }) => worth(text)),
    });
    const run: Executor['run'] = (task, context) =>
      executor.run(task, { ...context, renderer: { ...context.renderer, toolDialect: lettersDialect } });
    return { ...executor, run };
  },
  ...Object.fromEntries(
    SEARCH_STRATEGIES.map(strategy => [
      `tree, ${strategy}`,
      () => treeSearch(letters(), { strategy, budget: 24, topLogprobs: 4 }),
    ]),
  ),
  queue: () =>
    queueAgent({
      environment: () => ({ reset: () => [null, {}], step: () => [null, 0, true, false, {}] }),
      agent: () => ({
        async collectTrajectory({ qid, promptIds }, _, obs, act, { renderer }) {
          await obs.put([qid, promptIds]);
          const first = (await act.get()).seqs[0]!;
          await obs.put([qid, [...first, 33]]);
          const { seqs, outputIds } = await act.get();
          return [{ sequence: seqs[0]!, reward: worth(renderer.decode(outputIds[0]!)) }];
        },
      }),
    }),
  seats: () =>
    seats({
      seats: { one: 'policy', two: 'policy' },
      game: () => ({
        reset: () => ({ observations: { one: '1', two: '2' }, next: 'one' }),
        step: ({ seat, actionText }) => ({ rewards: { [seat]: worth(actionText) }, done: seat === 'two', next: 'two' }),
      }),
    }),
};
