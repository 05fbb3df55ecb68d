import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { explain } from '../../../episode/explain.ts';
import { messageOf } from '../../../episode/failure.ts';
import type { McpServerInput } from './config.ts';

const file = z.looseObject({ mcpServers: z.record(z.string(), z.unknown()) });

/**
 * The servers of a JSON file `{"mcpServers": {…}}`.
 * @throws Error that names the file and what is wrong with it
 */
export async function readMcpFile(path: string, cwd: string): Promise<Record<string, McpServerInput>> {
  const read = await readFile(resolve(cwd, path), 'utf8')
    .then(text => JSON.parse(text) as unknown)
    .catch((error: unknown) => {
      throw new Error(`env.mcp.config ${path}: ${messageOf(error)}`, { cause: error });
    });
  const parsed = file.safeParse(read);
  // Each server is checked by its name when it is used.
  if (parsed.success) return parsed.data.mcpServers as Record<string, McpServerInput>;
  throw new Error(`env.mcp.config ${path}: ${explain(parsed.error, read)}`);
}
