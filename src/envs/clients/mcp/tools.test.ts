import { resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Tool, ToolResult } from '../../tools/contracts.ts';
import type { McpServerInput } from './config.ts';
import { mcpTools } from './tools.ts';

/** Against a server of the repository that does what well-kept servers never do; real ones are in tests/mcp.test.ts. */

const script = resolve('tests/support/mcp-server.mjs');
const open: Tool[] = [];
afterEach(async () => {
  await Promise.all([...new Set(open.splice(0).map(({ pool }) => pool))].map(pool => pool?.close()));
});

async function toolsOf(mode: string, more: Partial<McpServerInput> = {}): Promise<Map<string, Tool>> {
  const server = { command: process.execPath, args: [script, mode], ...more } as McpServerInput;
  const tools = await mcpTools({ odd: server });
  open.push(...tools);
  return new Map(tools.map(tool => [tool.name, tool]));
}

async function call(tool: Tool, args: object = {}, episode = 'e'): Promise<ToolResult> {
  const { signal } = new AbortController();
  const resource = await tool.pool!.acquire(episode, signal);
  const task = { id: 't', prompt: '', label: '', metadata: {} };
  return (await tool.execute(args as never, { task, episode, seed: 1, resource, signal })) as ToolResult;
}

describe('mcpTools', () => {
  it('reads every page of tools/list', async () => {
    const tools = await toolsOf('pages');
    expect([...tools.keys()]).toEqual(['say', 'die', 'hang', 'odd', 'flood', 'count']);
    expect(await call(tools.get('say')!, { text: 'hi' })).toEqual({ content: 'hi', failed: false });
  });

  it('gives the tools that are wanted, under their prefix', async () => {
    const tools = await toolsOf('plain', { tools: ['count', 'say'], prefix: 'odd_' });
    expect([...tools.keys()]).toEqual(['odd_count', 'odd_say']);
  });

  it.each([
    [
      'bad-schema',
      {},
      /MCP server odd: tool "crooked" cannot be used: its inputSchema is no JSON Schema: type must be/,
    ],
    ['no-object', {}, /MCP server odd: tool "crooked" cannot be used: its inputSchema is \{"type":"string"\}, and not/],
    ['endless', {}, /MCP server odd: tools\/list does not end \(12 tools so far\)/],
    ['odd-list', {}, /MCP server odd: tools\/list: the answer has another shape: tools: .*mode odd-list/s],
    ['no-start', {}, /MCP server odd: cannot start ".*node": .*it said on stderr: mode no-start/s],
    ['plain', { tools: ['sing'] }, /MCP server odd has no tool "sing"; it has: say, die, hang, odd, flood, count/],
    ['plain', { command: 'no-such-program' }, /MCP server odd: cannot start "no-such-program": .*ENOENT/],
    ['plain', { command: '' }, /MCP server odd: command: /],
    ['plain', { colour: 'red' }, /MCP server odd: .*colour/],
    ['plain', { max_result_length: 0 }, /MCP server odd: max_result_length: /],
  ])('refuses %s %o', async (mode, more, message) => {
    await expect(toolsOf(mode, more as Partial<McpServerInput>)).rejects.toThrow(message);
  });

  it('checks arguments by the schema of the server, and shows it as it is', async () => {
    const { parameters } = (await toolsOf('plain')).get('say')!;
    expect(parameters.safeParse({ text: 'hi' }).success).toBe(true);
    expect(parameters.safeParse({ text: 1 }).error!.issues[0]!.message).toBe('data/text must be string');
  });

  it('shares one server among episodes, or gives each its own', async () => {
    const shared = (await toolsOf('plain')).get('count')!;
    expect([await call(shared, {}, 'a'), await call(shared, {}, 'b')].map(({ content }) => content)).toEqual([
      '1',
      '2',
    ]);
    const own = (await toolsOf('plain', { scope: 'episode' })).get('count')!;
    const counts = [await call(own, {}, 'a'), await call(own, {}, 'b'), await call(own, {}, 'a')];
    expect(counts.map(({ content }) => content)).toEqual(['1', '1', '2']);
    await own.pool!.release('a');
    expect((await call(own, {}, 'a')).content).toBe('1');
  });

  it('fails the episode whose server ends, with what it said last, and finds another for the next', async () => {
    for (const scope of ['shared', 'episode'] as const) {
      const tools = await toolsOf('plain', { scope });
      expect((await call(tools.get('count')!, {}, 'a')).content).toBe('1');
      const dead = call(tools.get('die')!, {}, 'a');
      await expect(dead).rejects.toMatchObject({ name: 'EpisodeError', failureClass: 'tool' });
      await expect(dead).rejects.toThrow(
        /MCP server odd: die: it ended during the call: .*stderr: mode plain\nno more/s,
      );
      expect((await call(tools.get('count')!, {}, 'b')).content).toBe('1');
    }
  });

  it('fails the episode on an answer of another shape', async () => {
    const odd = call((await toolsOf('plain')).get('odd')!);
    await expect(odd).rejects.toMatchObject({ failureClass: 'tool' });
    await expect(odd).rejects.toThrow(/MCP server odd: odd: the answer has another shape: content: /);
  });
});
