import type { z } from 'zod';
import { toolSchema } from '../../text/tool-calls/schema.ts';
import type { Tool } from './contracts.ts';

/**
 * Keeps the types of parameters and resource while a tool is written.
 * @throws Error for a name or parameters that models cannot be shown
 */
export function defineTool<P extends z.ZodType, R = undefined>(tool: Tool<P, R>): Tool {
  toolSchema(tool);
  return tool as unknown as Tool;
}
