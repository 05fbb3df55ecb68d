import { addAbortSignal } from 'node:stream';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { compose, pick } from '../config/compose.ts';
import { ConfigError } from '../config/error.ts';
import { DEFAULT_SAMPLING, type Generation, type Sampler } from '../engines/contracts.ts';
import { adapterOptions, engineOptions, modelOptions, samplingOptions } from '../engines/onnx/options.ts';
import type { Message } from '../episode/task.ts';
import { options, type Values } from '../options/option.ts';
import { dataOptions, rolloutOptions } from '../rollout/options.ts';
import type { Renderer } from '../text/renderer.ts';
import { trainOptions } from '../training/options.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { adapterOf, locateModel } from './model.ts';
import { TextStream } from './stream-text.ts';

const generateOptions = compose(
  pick(modelOptions, 'model.model_name_or_path', 'model.model_revision'),
  adapterOptions,
  options({
    prompt: {
      schema: z.string().optional(),
      help: 'What the policy is asked; without it standard input is read to its end',
    },
    logprobs: {
      schema: z.int().min(0).optional(),
      help: 'Show behind the answer each of its tokens with its log-probability and so many most probable ones',
      unit: 'tokens',
    },
    'rollout.temperature': {
      schema: z.number().min(0).default(1),
      help: 'Sampling temperature; 0 takes the most probable token each time',
      aliases: rolloutOptions['rollout.temperature'].aliases,
    },
  }),
  pick(dataOptions, 'data.apply_chat_template'),
  pick(
    rolloutOptions,
    'rollout.max_new_tokens',
    'rollout.top_p',
    'rollout.top_k',
    'rollout.min_p',
    'rollout.stop',
    'rollout.include_stop_str_in_output',
  ),
  pick(trainOptions, 'train.seed'),
  pick(engineOptions, 'engine.threads', 'engine.device'),
  samplingOptions,
);
type GenerateOptions = typeof generateOptions;

export const command = defineCommand({
  name: 'generate',
  options: generateOptions,
  details: 'The answer goes to standard output as it is sampled; a last line on standard error says how it ended.',
  async run(context) {
    const prompt = await readPrompt(context);
    const { onnxPolicy } = await import('../engines/onnx/index.ts');
    const { 'model.model_name_or_path': name, 'model.model_revision': revision } = context.values;
    const model = await locateModel(name, revision, context);
    const lora = adapterOf(context.values, context.cwd);
    const { 'engine.threads': threads, 'engine.device': device, 'rollout.dtype': samplingDtype } = context.values;
    const policy = await onnxPolicy({ model, lora, threads, device, samplingDtype, training: false });
    try {
      const { tokens, finishReason } = await generate(policy, prompt, context);
      context.stderr.write(`${tokens.length} tokens, ended by ${finishReason}\n`);
    } finally {
      await policy.close();
    }
    return 0;
  },
});

async function readPrompt(context: CommandContext<GenerateOptions>): Promise<string> {
  const { values, stdin, stderr, interrupt } = context;
  if (values.prompt === undefined && stdin.isTTY) stderr.write('prompt, ended by Ctrl-D:\n');
  const prompt = values.prompt ?? (await text(addAbortSignal(interrupt.signal, stdin)));
  if (prompt === '') throw new ConfigError(['the prompt is empty; give --prompt or pipe text in']);
  return prompt;
}

/** Streams one answer to `stdout`. */
export async function generate(
  { sampler, renderer }: { readonly sampler: Sampler; readonly renderer: Renderer },
  prompt: string,
  { values, stdout, interrupt }: Pick<CommandContext<GenerateOptions>, 'values' | 'stdout' | 'interrupt'>,
): Promise<Generation> {
  const messages: Message[] = [{ role: 'user', content: prompt }];
  const tokens = values['data.apply_chat_template'] ? renderer.prompt(messages) : renderer.encode(prompt);
  const room = sampler.contextLength - tokens.length;
  if (room < 1) {
    const window = `the model sees ${sampler.contextLength} tokens, prompt and answer together`;
    throw new ConfigError([`the prompt has ${tokens.length} tokens; ${window}; shorten it`]);
  }
  const stream = new TextStream(
    sampled => renderer.decode(sampled),
    piece => stdout.write(piece),
    [values['rollout.stop']].flat(),
  );
  const generation = await sampler.generate({
    tokens,
    params: samplingParams(values, room, renderer.stopTokens),
    seed: values['train.seed'] >>> 0,
    key: 'generate',
    signal: interrupt.signal,
    onToken: token => stream.push(token),
  });
  stream.finish(generation.stopString, values['rollout.include_stop_str_in_output']);
  stdout.write('\n');
  if (values.logprobs !== undefined) {
    stdout.write(`\n${logprobLines(generation, token => renderer.decode([token], { special: true })).join('\n')}\n`);
  }
  return generation;
}

function samplingParams(values: Values<GenerateOptions>, room: number, stopTokens: readonly number[]) {
  return {
    ...DEFAULT_SAMPLING,
    temperature: values['rollout.temperature'],
    topP: values['rollout.top_p'],
    topK: values['rollout.top_k'],
    minP: values['rollout.min_p'],
    stopStrings: [values['rollout.stop']].flat(),
    topLogprobs: values.logprobs ?? 0,
    maxTokens: Math.min(room, values['rollout.max_new_tokens'] ?? room),
    stopTokens,
  };
}

/** A line for each token: its text and log-probability, and those of the most probable tokens where they were asked for. */
function logprobLines({ tokens, logprobs, topLogprobs }: Generation, decode: (token: number) => string): string[] {
  const shown = (token: number, logprob: number) => `${JSON.stringify(decode(token))} ${logprob.toFixed(3)}`;
  return Array.from(tokens, (token, t) => {
    const top = topLogprobs?.[t];
    const others = top ? Array.from(top.tokens, (id, i) => shown(id, top.logprobs[i]!)) : [];
    return [shown(token, logprobs[t]!), ...(others.length > 0 ? [`| ${others.join('  ')}`] : [])].join(' ');
  });
}
