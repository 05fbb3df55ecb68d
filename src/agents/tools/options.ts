import { z } from 'zod';
import { options, type Values } from '../../options/option.ts';
import { TOOL_DIALECTS } from '../../text/tool-calls/choose.ts';
import type { ToolUseOptions } from './tool-use.ts';

/** Tools beside an environment: see tool-use.ts. */
export const toolUseOptions = options({
  'agent.tools': {
    schema: z
      .array(z.enum(['python', 'javascript']))
      .min(1)
      .optional(),
    help: 'Interpreters that the policy may call beside its environment, in the sandbox of this machine; an answer with a call does not reach the environment',
  },
  'agent.tool_calls': {
    schema: z.enum(['tags', ...TOOL_DIALECTS]).optional(),
    help: 'How those calls are written: <python>…</python> and fenced blocks (tags, when not given), or a dialect',
  },
  'agent.tool_reward': {
    schema: z.number().optional(),
    help: 'Earned by an answer that calls one of agent.tools; 0 when not given',
  },
  'agent.tool_success_reward': {
    schema: z.number().optional(),
    help: 'Earned beside it where no call of the answer failed; 0 when not given',
  },
  'agent.max_tool_uses': {
    schema: z.int().min(1).optional(),
    help: 'Answers of an episode that may call agent.tools, 10 when not given; what calls later goes to the environment',
    unit: 'answers',
  },
  'agent.tool_sandbox': {
    schema: z.record(z.string(), z.unknown()).optional(),
    help: 'Limits of the sandbox of agent.tools, as in {timeoutMs: 2000}; isolation: none runs code with your own rights',
  },
});

/** How the tools are called and rewarded. @throws Error for what has no tools to speak of */
export function toolUseFromOptions(
  values: Values<typeof toolUseOptions>,
  toolsOf: (
    names: readonly ('python' | 'javascript')[],
    sandbox: Readonly<Record<string, unknown>>,
  ) => ToolUseOptions['tools'],
): ToolUseOptions | undefined {
  const { 'agent.tools': names, ...rest } = values;
  if (names === undefined) {
    const lost = (Object.keys(toolUseOptions) as (keyof typeof toolUseOptions)[]).find(
      name => name !== 'agent.tools' && values[name] !== undefined,
    );
    if (lost !== undefined) throw new Error(`${lost} is for agent.tools, which is not given`);
    return undefined;
  }
  return {
    tools: toolsOf(names, rest['agent.tool_sandbox'] ?? {}),
    calls: rest['agent.tool_calls'],
    reward: rest['agent.tool_reward'],
    successReward: rest['agent.tool_success_reward'],
    maxUses: rest['agent.max_tool_uses'],
  };
}
