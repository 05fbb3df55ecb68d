import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { explain } from '../../../episode/explain.ts';
import { messageOf } from '../../../episode/failure.ts';
import type { Tool } from '../../tools/contracts.ts';
import type { McpServerInput } from './config.ts';
import { mcpTools } from './tools.ts';

const file = z.looseObject({ mcpServers: z.record(z.string(), z.unknown()) });

/**
 * The tools of `env.mcp.servers`: servers by name, or the path of a JSON file `{"mcpServers": {…}}`.
 * @throws Error that names the file, or the server and what is wrong with it
 */
export async function mcpToolsFrom(given: string | Readonly<Record<string, unknown>>, cwd: string): Promise<Tool[]> {
  if (typeof given !== 'string') return mcpTools(given as Record<string, McpServerInput>, cwd);
  const path = resolve(cwd, given);
  const read = await readFile(path, 'utf8')
    .then(text => JSON.parse(text) as unknown)
    .catch((error: unknown) => {
      throw new Error(`env.mcp.servers ${given}: ${messageOf(error)}`, { cause: error });
    });
  const parsed = file.safeParse(read);
  if (!parsed.success) throw new Error(`env.mcp.servers ${given}: ${explain(parsed.error, read)}`);
  return mcpTools(parsed.data.mcpServers as Record<string, McpServerInput>, cwd);
}
