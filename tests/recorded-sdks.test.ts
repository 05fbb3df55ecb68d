import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { tool as langchainTool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import {
  Agent,
  tool as agentsTool,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
} from '@openai/agents';
import { generateText, stepCountIs, streamText, ToolLoopAgent, tool } from 'ai';
import OpenAI from 'openai';
import { afterAll, expect, it } from 'vitest';
import { z } from 'zod';
import { type RecordedRun, recordedAgent } from '../src/agents/recorded/recorded-agent.ts';
import { toTrajectories } from '../src/episode/trajectory.ts';
import { validateEpisode } from '../src/episode/validate.ts';
import { byteRenderer } from '../src/testing/byte-tokenizer.ts';
import { testContext } from '../src/testing/executor-context.ts';
import { chatRenderer } from '../src/text/chat-renderer.ts';
import { chatTemplate } from '../src/text/template.ts';

/** The agent libraries that people use, each playing a tool agent of three turns through one server, 64 of each at once. */

const bytes = byteRenderer();
const renderer = chatRenderer({
  codec: bytes,
  stopTokens: bytes.stopTokens,
  template: chatTemplate(
    '{% if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }} {% endfor %}as <tool_call><|im_end|>\n{% endif %}' +
      '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}' +
      '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  ),
});

const parameters = z.object({ a: z.number(), b: z.number() });
const description = 'Adds two numbers.';
const add = ({ a, b }: z.infer<typeof parameters>) => String(a + b);

type Program = (question: string, at: RecordedRun) => Promise<string | null>;

const provider = ({ baseURL, apiKey }: RecordedRun) =>
  createOpenAICompatible({ name: 'recorded', baseURL, apiKey, includeUsage: true })('policy');
const aiTools = { add: tool({ description, inputSchema: parameters, execute: add }) };
const client = ({ baseURL, apiKey }: RecordedRun) => new OpenAI({ baseURL, apiKey });

const openaiTool = {
  type: 'function' as const,
  function: {
    name: 'add',
    description,
    parameters: z.toJSONSchema(parameters) as Record<string, unknown>,
    parse: (given: string) => parameters.parse(JSON.parse(given)),
    function: add,
  },
};

function openaiLoop(question: string, at: RecordedRun, stream: boolean): Promise<string | null> {
  const messages = [{ role: 'user' as const, content: question }];
  const body = { model: 'policy', messages, tools: [openaiTool] };
  const { completions } = client(at).chat;
  return (stream ? completions.runTools({ ...body, stream: true }) : completions.runTools(body)).finalContent();
}

async function openaiResponses(question: string, at: RecordedRun): Promise<string> {
  const api = client(at).responses;
  const tools = [
    { type: 'function' as const, name: 'add', description, strict: true, parameters: z.toJSONSchema(parameters) },
  ];
  let response = await api.create({ model: 'policy', input: question, tools });
  for (;;) {
    const calls = response.output.filter(item => item.type === 'function_call');
    if (calls.length === 0) return response.output_text;
    response = await api.create({
      model: 'policy',
      tools,
      previous_response_id: response.id,
      input: calls.map(({ call_id, arguments: given }) => ({
        type: 'function_call_output' as const,
        call_id,
        output: add(parameters.parse(JSON.parse(given))),
      })),
    });
  }
}

setTracingDisabled(true);
// The library asks for a client of the OpenAI SDK that it brings itself, which is newer.
const agentsModel = (at: RecordedRun, api: 'chat' | 'responses') => {
  const Model = api === 'chat' ? OpenAIChatCompletionsModel : OpenAIResponsesModel;
  return new Model(client(at) as unknown as ConstructorParameters<typeof Model>[0], 'policy');
};
const agentsRun = async (question: string, at: RecordedRun, api: 'chat' | 'responses', stream: boolean) => {
  const agent = new Agent({
    name: 'adder',
    model: agentsModel(at, api),
    tools: [agentsTool({ name: 'add', description, parameters, execute: async given => add(given) })],
  });
  const runner = new Runner({ tracingDisabled: true });
  if (!stream) return (await runner.run(agent, question)).finalOutput ?? null;
  const streamed = await runner.run(agent, question, { stream: true });
  await streamed.completed;
  return streamed.finalOutput ?? null;
};

async function anthropicLoop(question: string, { baseURL, apiKey }: RecordedRun, stream: boolean): Promise<string> {
  const api = new Anthropic({ baseURL, apiKey }).messages;
  const schema = z.toJSONSchema(parameters) as unknown as Anthropic.Tool.InputSchema;
  const tools = [{ name: 'add', description, input_schema: schema }];
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }];
  for (;;) {
    const body = { model: 'policy', max_tokens: 400, messages, tools } as const;
    const { content } = stream ? await api.stream(body).finalMessage() : await api.create(body);
    const calls = content.filter(block => block.type === 'tool_use');
    if (calls.length === 0) return content.map(block => (block.type === 'text' ? block.text : '')).join('');
    const results = calls.map(({ id, input }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: add(parameters.parse(input)),
    }));
    messages.push({ role: 'assistant', content }, { role: 'user', content: results });
  }
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  'AI SDK, generateText': async (prompt, at) =>
    (await generateText({ model: provider(at), prompt, tools: aiTools, stopWhen: stepCountIs(5) })).text,
  'AI SDK, streamText': async (prompt, at) =>
    streamText({ model: provider(at), prompt, tools: aiTools, stopWhen: stepCountIs(5) }).text,
  'AI SDK, ToolLoopAgent': async (prompt, at) =>
    (await new ToolLoopAgent({ model: provider(at), tools: aiTools }).generate({ prompt })).text,
  'OpenAI SDK, chat completions': (question, at) => openaiLoop(question, at, false),
  'OpenAI SDK, chat completions streamed': (question, at) => openaiLoop(question, at, true),
  'OpenAI SDK, responses': openaiResponses,
  'OpenAI Agents, chat completions': (question, at) => agentsRun(question, at, 'chat', false),
  'OpenAI Agents, responses': (question, at) => agentsRun(question, at, 'responses', false),
  'OpenAI Agents, responses streamed': (question, at) => agentsRun(question, at, 'responses', true),
  'Anthropic SDK': (question, at) => anthropicLoop(question, at, false),
  'Anthropic SDK, streamed': (question, at) => anthropicLoop(question, at, true),
  'LangChain, ReAct agent': async (question, { baseURL, apiKey }) => {
    const llm = new ChatOpenAI({ model: 'policy', apiKey, configuration: { baseURL } });
    const tools = [langchainTool(add, { name: 'add', description, schema: parameters })];
    const { messages } = await createReactAgent({ llm, tools }).invoke({
      messages: [{ role: 'user', content: question }],
    });
    return String(messages.at(-1)!.content);
  },
};

/** Adds the episode's number twice, by two calls, and says the sum: every answer depends on its own conversation alone. */
function answer(context: string): string {
  const [, question = ''] = /user\n(\d+)<\|im_end\|>/.exec(context) ?? [];
  const results = [...context.matchAll(/<\|im_start\|>tool\n(\d+)<\|im_end\|>/g)].map(([, result]) => Number(result));
  if (results.length === 2) return `sum ${results[1]} of ${question}`;
  const given = { a: results[0] ?? 0, b: Number(question) };
  return `<tool_call>${JSON.stringify({ name: 'add', arguments: given })}</tool_call>`;
}

const program = new Map<string, Program>();
const agent = recordedAgent({
  run: async (task, at) => ((await program.get(task.id)!(String(task.prompt), at)) === task.label ? 1 : 0),
});
afterAll(() => agent.close?.());

const play = async (name: string, number: number) => {
  const id = `${name} ${number}`;
  program.set(id, PROGRAMS[name]!);
  const context = testContext({
    renderer,
    sample: number,
    answers: ({ tokens }) => answer(renderer.decode(tokens, { special: true })),
    limits: { maxNewTokens: 400 },
  });
  const task = { id, prompt: String(number), label: `sum ${2 * number} of ${number}`, metadata: {} };
  const episode = await agent.run(task, context);
  validateEpisode(episode, { vocabularySize: renderer.vocabularySize });
  return episode;
};

it.each(Object.keys(PROGRAMS))('%s', async name => {
  const episode = await play(name, 7);
  expect(episode.outcome).toEqual({ kind: 'done' });
  expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 0, 1]);
  expect(episode.metrics).toMatchObject({ recorded_replayed: 1, recorded_branches: 0, tool_calls: 2 });
  expect(toTrajectories(episode)).toHaveLength(1);
});

it('64 of each at once, mixed in one server', { timeout: 120_000 }, async () => {
  const names = Object.keys(PROGRAMS);
  const episodes = await Promise.all(
    Array.from({ length: 64 * names.length }, (_, i) => play(names[i % names.length]!, 100 + i)),
  );
  for (const [i, { steps, outcome, segments }] of episodes.entries()) {
    expect({ outcome, rewards: steps.map(({ reward }) => reward) }).toEqual({
      outcome: { kind: 'done' },
      rewards: [0, 0, 1],
    });
    const text = segments.map(({ tokens }) => renderer.decode(tokens)).join('');
    const others = [...text.matchAll(/user\n(\d+)/g)].map(([, number]) => Number(number));
    expect(new Set(others)).toEqual(new Set([100 + i]));
  }
});
