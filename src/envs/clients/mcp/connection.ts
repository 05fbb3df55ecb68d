import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { EpisodeError, messageOf } from '../../../episode/failure.ts';
import type { ToolResult } from '../../tools/contracts.ts';
import { Tail } from '../tail.ts';
import type { McpServer } from './config.ts';
import { callResult, textOf } from './content.ts';
import type { Sdk } from './sdk.ts';

const listed = z.looseObject({
  tools: z.array(
    z.looseObject({
      name: z.string(),
      description: z.string().optional(),
      inputSchema: z.unknown(),
    }),
  ),
  nextCursor: z.string().optional(),
});
export type ListedTool = z.output<typeof listed>['tools'][number];

/** Tools of one server; more are a server gone wrong. */
const MAX_TOOLS = 1000;
/** Ours end calls (the deadline of the call, the end of the episode), not the SDK's. */
const NO_TIMEOUT = 2 ** 31 - 1;

/** One connection to one server: a child process of ours, or a session of a server elsewhere. */
export class McpConnection {
  readonly #name: string;
  readonly #sdk: Sdk;
  readonly #client: InstanceType<Sdk['Client']>;
  readonly #stderr = new Tail();
  #isOpen = false;

  private constructor(name: string, sdk: Sdk) {
    this.#name = name;
    this.#sdk = sdk;
    this.#client = new sdk.Client({ name: 'tokenloop', version: '1' });
    this.#client.onclose = () => {
      this.#isOpen = false;
    };
  }

  /**
   * Starts or reaches a server. @param cwd where relative working directories of servers begin
   * @throws Error that names the server, with the end of its stderr
   */
  static async open(name: string, server: McpServer, sdk: Sdk, cwd: string, signal?: AbortSignal) {
    const connection = new McpConnection(name, sdk);
    const client = connection.#client;
    try {
      const transport = connection.#transport(server, cwd);
      await client.connect(transport, { timeout: server.connect_timeout_ms, ...(signal ? { signal } : {}) });
      connection.#isOpen = true;
      return connection;
    } catch (error) {
      await client.close();
      const what = 'url' in server ? `cannot reach ${server.url}` : `cannot start ${JSON.stringify(server.command)}`;
      throw new Error(`MCP server ${name}: ${what}: ${reasonOf(error)}${connection.#stderr}`, { cause: error });
    }
  }

  /** False once the server has ended. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Every tool that the server lists, page by page. */
  async listTools(timeout: number): Promise<ListedTool[]> {
    const tools: ListedTool[] = [];
    const seen = new Set<string>();
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const page = await this.#client.request({ method: 'tools/list', params }, listed, { timeout }).catch(error => {
        throw new Error(`MCP server ${this.#name}: tools/list: ${reasonOf(error)}${this.#stderr}`, { cause: error });
      });
      tools.push(...page.tools);
      cursor = page.nextCursor;
      if (tools.length > MAX_TOOLS || (cursor !== undefined && seen.has(cursor))) {
        throw new Error(`MCP server ${this.#name}: tools/list does not end (${tools.length} tools so far)`);
      }
      if (cursor !== undefined) seen.add(cursor);
    } while (cursor !== undefined);
    return tools;
  }

  /**
   * Calls a tool. An error that the server answers with is told to the policy.
   * @throws EpisodeError 'tool' when the server ended, could not be reached or answered in another shape
   */
  async call(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult> {
    const { ErrorCode, McpError } = this.#sdk;
    try {
      const request = { method: 'tools/call' as const, params: { name, arguments: args } };
      const result = await this.#client.request(request, callResult, { signal, timeout: NO_TIMEOUT });
      return { content: textOf(result), failed: result.isError === true };
    } catch (error) {
      const local: readonly number[] = [ErrorCode.ConnectionClosed, ErrorCode.RequestTimeout];
      if (error instanceof McpError && !local.includes(error.code)) throw error;
      const what = this.#isOpen ? reasonOf(error) : `it ended during the call: ${reasonOf(error)}`;
      throw new EpisodeError('tool', `MCP server ${this.#name}: ${name}: ${what}${this.#stderr}`);
    }
  }

  /** Ends a child: its stdin first, then by SIGTERM, then by SIGKILL, two seconds apart. */
  close(): Promise<void> {
    return this.#client.close();
  }

  #transport(server: McpServer, cwd: string) {
    if ('url' in server) {
      const { url, headers } = server;
      return new this.#sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    }
    const { command, args, env } = server;
    const at = resolve(cwd, server.cwd ?? '.');
    const transport = new this.#sdk.StdioClientTransport({ command, args, env, cwd: at, stderr: 'pipe' });
    this.#stderr.follow(transport.stderr as Readable);
    return transport;
  }
}

/** zod writes what is wrong with a shape as JSON of many lines; fetch hides the reason in its cause. */
function reasonOf(error: unknown): string {
  const { issues, cause } = error as { issues?: readonly z.core.$ZodIssue[]; cause?: unknown };
  if (issues !== undefined) {
    const wrong = issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
    return `the answer has another shape: ${wrong}`;
  }
  return cause instanceof Error ? `${messageOf(error)}: ${cause.message}` : messageOf(error);
}
