import { expect, it } from 'vitest';
import type { Span, SpanAttributes, Tracing } from '../episode/span.ts';
import type { Task } from '../episode/task.ts';
import { testContext } from '../testing/executor-context.ts';
import type { Executor } from './contracts.ts';
import { multiTurn } from './multi-turn.ts';
import { singleTurn } from './single-turn.ts';
import { traced } from './traced.ts';
import { treeSearch } from './tree/tree-search.ts';

interface Recorded {
  readonly name: string;
  readonly attributes: Record<string, unknown>;
  readonly children: Recorded[];
}

/** Keeps spans as a tree. */
function recordingTracing(): { readonly tracing: Tracing; readonly roots: Recorded[] } {
  const below =
    (siblings: Recorded[]): Tracing['within'] =>
    async (name: string, attributes: SpanAttributes, work: (span: Span) => Promise<never>) => {
      const own: Recorded = { name, attributes: { ...attributes }, children: [] };
      siblings.push(own);
      return work({
        within: below(own.children),
        set: more => void Object.assign(own.attributes, more),
        fail: (type, message) => void Object.assign(own.attributes, { type, message }),
      });
    };
  const roots: Recorded[] = [];
  return { tracing: { within: below(roots) }, roots };
}

const task: Task = { id: 'sum', prompt: '1+1=', label: '2', metadata: {}, source: 'sums' };

async function trace(agent: Executor, answers: () => string) {
  const { tracing, roots } = recordingTracing();
  const plain = await agent.run(task, testContext({ answers }));
  const episode = await traced(agent, tracing).run(task, testContext({ answers }));
  expect(episode).toEqual(plain);
  expect(roots).toHaveLength(1);
  return roots[0]!;
}

it('records an episode: every answer, every call of the environment, reward and outcome', async () => {
  const environment = {
    reset: async () => ({ observation: 'go' }),
    step: async ({ turn }: { turn: number }) => ({ reward: turn, feedback: 'more', done: turn === 1 }),
  };
  const root = await trace(
    multiTurn(() => environment),
    () => 'ab',
  );
  expect(root).toMatchObject({
    name: 'invoke_agent multi-turn',
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'multi-turn',
      'tokenloop.episode.id': 'episode-0',
      'tokenloop.task.id': 'sum',
      'tokenloop.task.source': 'sums',
      'tokenloop.outcome': 'done',
      'tokenloop.turns': 2,
      'tokenloop.reward': 1,
    },
  });
  const names = root.children.map(({ name }) => name).filter(name => !['prompt', 'feedback'].includes(name));
  expect(names).toEqual([
    'making the environment',
    'environment.reset',
    'text_completion',
    'environment.step',
    'text_completion',
    'environment.step',
  ]);
  expect(root.children.find(({ name }) => name === 'text_completion')!.attributes).toMatchObject({
    'gen_ai.operation.name': 'text_completion',
    'gen_ai.request.max_tokens': 64,
    'gen_ai.usage.input_tokens': 2,
    'gen_ai.usage.output_tokens': 3,
    'gen_ai.response.finish_reasons': ['stop'],
    'tokenloop.version': 0,
  });
});

it('records the reward of a single answer, and a failure with its class', async () => {
  const scored = await trace(singleTurn({ reward: async () => [{ reward: 1 }] }), () => '2');
  expect(scored.children.map(({ name }) => name)).toContain('reward');
  const failed = await trace(singleTurn({ reward: () => Promise.reject(new Error('no power')) }), () => '2');
  expect(failed.attributes).toMatchObject({
    type: 'reward',
    message: 'reward: no power',
    'tokenloop.outcome': 'failed',
  });
});

it('closes the agent', async () => {
  let closed = 0;
  const agent: Executor = { ...singleTurn({ reward: async () => [] }), close: async () => void closed++ };
  await traced(agent, recordingTracing().tracing).close?.();
  expect(closed).toBe(1);
  expect(traced(singleTurn({ reward: async () => [] }), recordingTracing().tracing)).not.toHaveProperty('close');
});

it('traces how one attempt is made, too, where the agent makes several', () => {
  const search = treeSearch(() => ({ reset: () => ({ observation: 'q' }), step: () => ({ reward: 0, done: true }) }), {
    strategy: 'turns',
  });
  expect(traced(search, recordingTracing().tracing).single).toMatchObject({ name: 'multi-turn' });
});
