import { z } from 'zod';
import { toolAgent } from '../src/agents/tools/tool-agent.ts';
import { DEFAULT_SAMPLING, type GenerateRequest, type Generation } from '../src/engines/contracts.ts';
import { defineTool } from '../src/envs/tools/define.ts';
import { immediate } from '../src/rollout/admission.ts';
import { runGroups } from '../src/rollout/groups.ts';
import { toTask } from '../src/rollout/tasks.ts';
import { byteRenderer } from '../src/testing/byte-tokenizer.ts';
import { Report } from './harness.ts';

const EPISODES = 10_000;
const AT_ONCE = 256;
const TURNS = 4;

/**
 * 10 000 episodes of a tool agent (three calls and an answer) on an engine that takes no time, 256 at a time, on a
 * tokenizer of bytes: episodes/s, memory, and the time between an answer and the next request of the same episode.
 */
export async function run(): Promise<void> {
  const renderer = byteRenderer();
  const call = renderer.encode('<tool_call>{"name":"add","arguments":{"a":1,"b":2}}</tool_call><|im_end|>');
  const last = renderer.encode('3<|im_end|>');
  const answered = new Map<string, { turn: number; at: number }>();
  const waits: number[] = [];
  const sampler = {
    generate: async ({ key }: GenerateRequest): Promise<Generation> => {
      const episode = key.slice(0, key.lastIndexOf('#'));
      const before = answered.get(episode);
      const now = performance.now();
      if (before !== undefined) waits.push(now - before.at);
      const turn = (before?.turn ?? -1) + 1;
      if (turn + 1 < TURNS) answered.set(episode, { turn, at: now });
      else answered.delete(episode);
      const tokens = (turn + 1 < TURNS ? call : last).slice();
      const [logprobs, versions] = [new Float32Array(tokens.length).fill(-1), new Int32Array(tokens.length)];
      return { tokens, logprobs, versions, finishReason: 'stop' };
    },
  };
  const add = defineTool({
    name: 'add',
    description: 'Adds two numbers.',
    parameters: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => String(a + b),
  });
  const executor = toolAgent({ tools: [add], reward: inputs => inputs.map(() => 1), dialect: 'hermes' });
  const context = {
    executor,
    admission: immediate(sampler),
    contextLength: 8192,
    renderer,
    params: { ...DEFAULT_SAMPLING, maxTokens: 256, stopTokens: renderer.stopTokens },
    limits: { maxTurns: 8, maxNewTokens: 256, maxTokens: 8192, callTimeoutMs: 60_000 },
    seed: 1,
    signal: new AbortController().signal,
    log: () => undefined,
  };
  const began = performance.now();
  for (let first = 0; first < EPISODES; first += AT_ONCE) {
    const specs = Array.from({ length: Math.min(AT_ONCE, EPISODES - first) / 8 }, (_, i) => ({
      task: toTask({ prompt: '1 + 2?' }, first + i, 'bench'),
      group: `${first + i}@0`,
      samples: 8,
      environmentSeed: i,
    }));
    for (const { episodes } of await runGroups(specs, context)) {
      const odd = episodes.find(({ outcome, steps }) => outcome.kind !== 'done' || steps.length !== TURNS);
      if (odd) throw new Error(`an episode of ${odd.steps.length} turns ended with ${JSON.stringify(odd.outcome)}`);
    }
  }
  const seconds = (performance.now() - began) / 1000;
  waits.sort((a, b) => a - b);
  const at = (share: number) => waits[Math.floor(share * (waits.length - 1))]!;
  const report = new Report('tools');
  report.add({
    title: `${EPISODES} tool-agent episodes of ${TURNS} turns, ${AT_ONCE} at a time, instant engine`,
    columns: ['executor', 'episodes/s', 'memory in MB', 'p50 in ms', 'p99 in ms between answer and next request'],
    rows: [['tool agent', EPISODES / seconds, process.resourceUsage().maxRSS / 1024, at(0.5), at(0.99)]],
  });
  report.save();
}
