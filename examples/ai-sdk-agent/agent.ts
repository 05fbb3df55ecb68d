import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, tool } from 'ai';
import { z } from 'zod';

/** An agent as one writes it with the AI SDK: a question in, an answer out, a calculator at hand. */
export async function solve(question: string, connection: { baseURL: string; apiKey: string }): Promise<string> {
  const provider = createOpenAICompatible({ name: 'local', ...connection });
  const { text } = await generateText({
    model: provider('policy'),
    prompt: question,
    tools: { calculator },
    stopWhen: stepCountIs(3),
  });
  return text;
}

const calculator = tool({
  description: 'Computes an arithmetic expression.',
  inputSchema: z.object({ expression: z.string().max(64) }),
  execute: ({ expression }) => {
    if (!/^[\d.+\-*/() ]+$/.test(expression)) return 'e';
    try {
      const value: unknown = new Function(`return (${expression});`)();
      return typeof value === 'number' && Number.isFinite(value) ? String(Number(value.toPrecision(12))) : 'e';
    } catch {
      return 'e'; // not arithmetic: the model is told
    }
  },
});
