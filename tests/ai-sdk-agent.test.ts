import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadAgentFile } from '../src/agents/file.ts';
import { multiTurn } from '../src/agents/multi-turn.ts';
import { toTrajectories } from '../src/episode/trajectory.ts';
import { testContext } from '../src/testing/executor-context.ts';
import { loadRenderer } from '../src/text/chat-renderer.ts';

const example = fileURLToPath(new URL('../examples/ai-sdk-agent/', import.meta.url));

it('runs the agent of the example, whose model writes calls that the SDK can read', async () => {
  const renderer = await loadRenderer(`${example}model`);
  const agent = await loadAgentFile('reward.ts', multiTurn, example);
  const call = '<tool_call>{"name":"calculator","arguments":{"expression":"130+220"}}</tool_call>';
  const context = testContext({ renderer, answers: (_, index) => [call, '350'][index]! });
  const episode = await agent.run({ id: 't', prompt: '130+220', label: '350', metadata: {} }, context);
  await agent.close?.();
  expect(episode).toMatchObject({ outcome: { kind: 'done' }, score: 1, metrics: { turns: 2, recorded_replayed: 1 } });
  const [trajectory] = toTrajectories(episode);
  expect(renderer.decode(trajectory!.tokens, { special: true })).toBe(
    `<|user|>130+220<|end|><|assistant|>${call}<|end|><|tool|>350<|end|><|assistant|>350<|end|>`,
  );
  expect(trajectory!.tokens).toHaveLength(30);
});
