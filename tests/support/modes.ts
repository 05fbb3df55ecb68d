import { z } from 'zod';
import type { Executor } from '../../src/agents/contracts.ts';
import { type HistoryOptions, onlyCalls } from '../../src/agents/folding.ts';
import type { ExecutionMode } from '../../src/agents/modes.ts';
import { multiTurn } from '../../src/agents/multi-turn.ts';
import { nemoGym } from '../../src/agents/nemo-gym/resources-agent.ts';
import { queueAgent } from '../../src/agents/queue/queue-agent.ts';
import { type RecordedRun, recordedAgent } from '../../src/agents/recorded/recorded-agent.ts';
import { seats } from '../../src/agents/seats.ts';
import { singleTurn } from '../../src/agents/single-turn.ts';
import { toolAgent } from '../../src/agents/tools/tool-agent.ts';
import { SEARCH_STRATEGIES, treeSearch } from '../../src/agents/tree/tree-search.ts';
import type { ResourcesServer, ResponseObject } from '../../src/envs/clients/nemo-gym/contracts.ts';
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

const callIn = (answer: string) => (answer.startsWith('b') ? 't' : answer.startsWith('c') ? 'summarize' : undefined);

/** An answer that begins with b is a call, one that begins with c a summary: what a policy of three letters can say. */
const lettersDialect: ToolDialect = {
  name: 'letters',
  parse: answer => {
    const name = callIn(answer);
    const calls = name === undefined ? [] : [{ kind: 'call', name, arguments: { summary: answer } } as const];
    return { content: answer, reasoning: undefined, calls, written: name === undefined ? '' : answer };
  },
  instructions: () => '',
  result: ({ content }) => ({ role: 'user', content }),
  stopStrings: [],
  marks: [],
};

const lettersTools = (history: HistoryOptions): Executor => {
  const executor = toolAgent({
    tools: [defineTool({ name: 't', description: 't', parameters: z.object({}), execute: () => '' })],
    reward: inputs => inputs.map(({ text }) => worth(text)),
    ...history,
  });
  const run: Executor['run'] = (task, context) =>
    executor.run(task, { ...context, renderer: { ...context.renderer, toolDialect: lettersDialect } });
  return { ...executor, run };
};

/** A program of two requests: the second goes on with the first answer, the stop sequence of which it was not shown. */
async function askTwice({ baseURL, apiKey }: RecordedRun): Promise<number> {
  const messages = [{ role: 'user', content: 'q' }];
  let earned = 0;
  for (let turn = 0; turn < 2; turn++) {
    const response = await fetch(`${baseURL}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: 'policy', messages }),
    });
    const { choices } = (await response.json()) as { choices: { message: { role: string; content: string } }[] };
    const { message } = choices[0]!;
    earned += worth(message.content);
    messages.push(message, { role: 'user', content: 'more' });
  }
  return earned;
}

/** A server whose verdict is on the last answer; in the style of Gymnasium on each of three. */
const lettersServer: ResourcesServer = {
  session: () => {
    let turn = 0;
    const earned = ({ output }: ResponseObject) => {
      const [said] = (output.at(-1)?.content ?? []) as readonly { readonly text: string }[];
      return worth(said?.text ?? '');
    };
    return {
      seed: async () => undefined,
      call: async () => ({ status: 200, text: '!' }),
      verify: async (row, response) => ({ ...row, reward: earned(response) }),
      reset: async () => ({ observation: 'begin', info: {} }),
      step: async (_, response) => {
        const over = { observation: '!', info: {}, toolOutputs: [], terminated: ++turn === 3, truncated: false };
        return { ...over, reward: earned(response) };
      },
      close: async () => undefined,
    };
  },
  aggregateMetrics: async () => ({}),
};

const lettersGym = (style: 'tools' | 'gymnasium'): Executor => {
  const executor = nemoGym({ server: lettersServer, style });
  const tools = [{ type: 'function', name: 't', parameters: {} }];
  const run: Executor['run'] = (task, context) =>
    executor.run(
      { ...task, metadata: { responses_create_params: { input: String(task.prompt), tools } } },
      { ...context, renderer: { ...context.renderer, toolDialect: lettersDialect } },
    );
  return { ...executor, run };
};

type Cases = Readonly<Record<string, () => Executor>>;

/** Each execution mode, in all its forms, small enough for a policy of three letters. */
export const MODE_CASES: Readonly<Record<ExecutionMode, Cases>> = {
  'single-turn': { '': () => singleTurn({ reward: inputs => inputs.map(({ text }) => worth(text)) }) },
  'multi-turn': {
    '': () => multiTurn(letters()),
    folded: () => multiTurn(letters(true), { fold: { turns: 1 } }),
    'single-turn views': () => multiTurn(letters(true), { keep: content => content.slice(0, 1) }),
  },
  tool: {
    '': () => lettersTools({}),
    'folding by itself': () => lettersTools({ fold: { tool: true } }),
    'calls alone in the history': () => lettersTools({ keep: onlyCalls }),
  },
  recorded: { '': () => recordedAgent({ run: (_, episode) => askTwice(episode) }) },
  'nemo-gym': { tools: () => lettersGym('tools'), 'in the style of Gymnasium': () => lettersGym('gymnasium') },
  tree: Object.fromEntries(
    SEARCH_STRATEGIES.map(strategy => [
      strategy,
      () => treeSearch(letters(), { strategy, budget: 24, topLogprobs: 4 }),
    ]),
  ),
  queue: {
    '': () =>
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
  },
  seats: {
    '': () =>
      seats({
        seats: { one: 'policy', two: 'policy' },
        game: () => ({
          reset: () => ({ observations: { one: '1', two: '2' }, next: 'one' }),
          step: ({ seat, actionText }) => ({
            rewards: { [seat]: worth(actionText) },
            done: seat === 'two',
            next: 'two',
          }),
        }),
      }),
  },
};

/** By the name of the mode and of its form. */
export const MODES: Cases = Object.fromEntries(
  Object.entries(MODE_CASES).flatMap(([mode, forms]) =>
    Object.entries(forms).map(([form, make]) => [form === '' ? mode : `${mode}, ${form}`, make] as const),
  ),
);
