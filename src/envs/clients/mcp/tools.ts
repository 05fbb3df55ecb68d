import { z } from 'zod';
import { messageOf } from '../../../episode/failure.ts';
import type { Tool } from '../../tools/contracts.ts';
import { defineTool } from '../../tools/define.ts';
import { type McpServer, type McpServerInput, parseMcpServer } from './config.ts';
import { type ListedTool, McpConnection } from './connection.ts';
import { connectionPool } from './pool.ts';
import { loadSdk, type Sdk } from './sdk.ts';

/**
 * The tools of MCP servers, for `toolAgent`, which also closes them. Each server is asked once what it has, and started
 * again at the first call; its schemas are shown to the policy as they are, and arguments are checked by them before a call is made.
 *
 * A call that the server refuses (`isError`, unknown arguments) is told to the policy. A server that ends, cannot be
 * reached or answers in another shape fails the episodes that called it, class `tool`; the next call finds a new one.
 * @param servers name → how it is reached, as in `mcpServers` files
 * @param cwd where relative working directories of servers begin
 * @throws Error that names the server, and the tool whose schema is no JSON Schema of an object
 */
export async function mcpTools(
  servers: Readonly<Record<string, McpServerInput>>,
  cwd: string = process.cwd(),
): Promise<Tool[]> {
  const parsed = Object.entries(servers).map(([name, given]) => [name, parseMcpServer(name, given)] as const);
  if (parsed.length === 0) throw new Error('no MCP server is given; give at least one, {name: {command, args}}');
  const sdk = await loadSdk();
  const tools = await Promise.all(parsed.map(([name, server]) => toolsOf(name, server, sdk, cwd)));
  return tools.flat();
}

async function toolsOf(name: string, server: McpServer, sdk: Sdk, cwd: string): Promise<Tool[]> {
  const open = (signal?: AbortSignal) => McpConnection.open(name, server, sdk, cwd, signal);
  // Asked over a connection of its own: what is never called leaves no server behind.
  const connection = await open();
  try {
    const listed = chosen(name, server, await connection.listTools(server.connect_timeout_ms));
    const pool = connectionPool(name, server, open);
    return listed.map(one => toolOf(name, one, server, pool, sdk));
  } finally {
    await connection.close();
  }
}

function chosen(name: string, { tools: wanted }: McpServer, listed: readonly ListedTool[]): readonly ListedTool[] {
  if (wanted === undefined) return listed;
  return wanted.map(tool => {
    const found = listed.find(one => one.name === tool);
    if (found !== undefined) return found;
    const known = listed.map(one => one.name).join(', ');
    throw new Error(`MCP server ${name} has no tool ${JSON.stringify(tool)}; it has: ${known}`);
  });
}

function toolOf(
  server: string,
  { name, description = '', inputSchema }: ListedTool,
  { prefix, call_timeout_ms, max_result_length }: McpServer,
  pool: ReturnType<typeof connectionPool>,
  sdk: Sdk,
): Tool {
  try {
    return defineTool<z.ZodType, McpConnection>({
      // The protocol allows more characters than models are used to.
      name: `${prefix}${name}`.replace(/[^A-Za-z0-9_-]/g, '_'),
      description,
      parameters: checkedBy(inputSchema, sdk),
      pool,
      timeoutMs: call_timeout_ms,
      maxLength: max_result_length,
      execute: (args, { resource, signal }) => resource.call(name, args as Record<string, unknown>, signal),
    });
  } catch (error) {
    throw new Error(`MCP server ${server}: tool ${JSON.stringify(name)} cannot be used: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** A schema that models are shown as the server wrote it, and that checks as JSON Schema says. */
function checkedBy(inputSchema: unknown, sdk: Sdk): z.ZodType {
  const schema = z.looseObject({ type: z.literal('object') }).safeParse(inputSchema);
  if (!schema.success) {
    throw new Error(
      `its inputSchema is ${JSON.stringify(inputSchema)?.slice(0, 200)}, and not a schema of type object`,
    );
  }
  const validate = (() => {
    try {
      return new sdk.AjvJsonSchemaValidator().getValidator<Record<string, unknown>>(schema.data);
    } catch (error) {
      throw new Error(`its inputSchema is no JSON Schema: ${messageOf(error)}`, { cause: error });
    }
  })();
  return z
    .looseObject({})
    .superRefine((args, context) => {
      const checked = validate(args);
      if (!checked.valid) context.addIssue({ code: 'custom', message: checked.errorMessage });
    })
    .meta(schema.data);
}
