import { z } from 'zod';
import type { ToolSchema } from './dialect.ts';

/**
 * A tool in the form of chat templates and the OpenAI API.
 * @throws Error for a name or parameters that models cannot be shown
 */
export function toolSchema(tool: {
  readonly name: string;
  readonly description: string;
  readonly parameters: z.ZodType;
}): ToolSchema {
  const { name, description } = tool;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new Error(
      `tool ${JSON.stringify(name)}: a name is 1 to 64 letters, digits, '_' or '-', because models write it unquoted`,
    );
  }
  const { $schema: _, ...parameters } = jsonSchema(name, tool.parameters);
  if (parameters.type !== 'object') {
    throw new Error(`tool ${name}: its parameters are ${JSON.stringify(parameters.type)}; give a z.object({…})`);
  }
  return { type: 'function', function: { name, description, parameters } };
}

function jsonSchema(name: string, parameters: z.ZodType): Record<string, unknown> {
  try {
    return z.toJSONSchema(parameters, { io: 'input' });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`tool ${name}: its parameters cannot be shown to a model: ${reason}`, { cause: error });
  }
}
