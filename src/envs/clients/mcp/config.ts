import { z } from 'zod';
import { explain } from '../../../episode/explain.ts';

/**
 * How an MCP server is reached, in the form of the `mcpServers` files that MCP clients share, and what of it the policy
 * is given.
 */
const common = {
  /** Tools the policy is given, by the server's names; all when not given. */
  tools: z.array(z.string().min(1)).min(1).optional(),
  /** Put before the names of the tools, where two servers have tools of one name. */
  prefix: z
    .string()
    .regex(/^[A-Za-z0-9_-]*$/, "letters, digits, '_' and '-'")
    .default(''),
  /** 'shared': one server for all episodes; 'episode': each episode has one of its own, made anew. */
  scope: z.enum(['shared', 'episode']).default('shared'),
  /** Servers at once where each episode has its own; more episodes wait. */
  max: z.int().min(1).default(16),
  /** Deadline for a server to be ready. */
  connect_timeout_ms: z.int().min(1).default(30_000),
  /** Deadline of one call; the run's (`agent.call_timeout_ms`) when not given. */
  call_timeout_ms: z.int().min(1).optional(),
  /** Characters of a result that the policy is shown. */
  max_result_length: z.int().min(1).default(8192),
};

const strings = z.record(z.string(), z.string());

export const mcpServer = z.union([
  z.strictObject({
    type: z.literal('stdio').optional(),
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    /** All of the server's environment, beside the few variables that programs need to start (PATH, HOME …). */
    env: strings.default({}),
    /** Working directory of the server, from the working directory of the run. */
    cwd: z.string().min(1).optional(),
    ...common,
  }),
  z.strictObject({
    type: z.enum(['http', 'streamable-http']).optional(),
    url: z.url({ protocol: /^https?$/ }),
    headers: strings.default({}),
    ...common,
  }),
]);

export type McpServerInput = z.input<typeof mcpServer>;
export type McpServer = z.output<typeof mcpServer>;

/** @throws Error that names the server and the field */
export function parseMcpServer(name: string, given: unknown): McpServer {
  const remote = typeof given === 'object' && given !== null && 'url' in given;
  const parsed = mcpServer.options[remote ? 1 : 0].safeParse(given);
  if (parsed.success) return parsed.data;
  throw new Error(`MCP server ${name}: ${explain(parsed.error, given)}`);
}
