import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { toolAgent } from '../src/agents/tools/tool-agent.ts';
import { readMcpFile } from '../src/envs/clients/mcp/file.ts';
import { mcpTools } from '../src/envs/clients/mcp/tools.ts';
import type { Tool } from '../src/envs/tools/contracts.ts';
import type { RewardFunction } from '../src/rewards/contracts.ts';
import { testContext } from '../src/testing/executor-context.ts';

/** Tool agents on MCP servers as they are published, over stdio and HTTP. */

const bin = (name: string) => resolve(`node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
const stdio = (name: string, ...args: string[]) => ({ command: process.execPath, args: [bin(name), ...args] });
const folder = mkdtempSync(join(tmpdir(), 'tokenloop-mcp-'));
writeFileSync(join(folder, 'age.txt'), 'forty-two');
const task = { id: 't', prompt: 'How old?', label: 'forty-two', metadata: {} };
const exact: RewardFunction = batch => batch.map(({ text, label }) => (text === label ? 1 : 0));
const act = (name: string, given: object) => `Action: ${name}\nAction Input: ${JSON.stringify(given)}`;

/** An episode in which the policy says `lines`; what it was told after each. */
async function play(tools: readonly Tool[], lines: readonly string[], limits = {}) {
  const agent = toolAgent({ tools, reward: exact, dialect: 'react' });
  const context = testContext({
    answers: (_, index) => lines[index] ?? 'out of lines',
    contextLength: 60_000,
    limits: { maxNewTokens: 2000, maxTokens: 60_000, callTimeoutMs: 20_000, ...limits },
  });
  const episode = await agent.run(task, context);
  const seen = context.sampler.requests.map(({ tokens }) => context.renderer.decode(tokens, { special: true }));
  return { agent, episode, last: seen.at(-1)! };
}

describe('filesystem', () => {
  it('reads a file; what the server refuses is told to the policy', async () => {
    const tools = await mcpTools({ files: { ...stdio('filesystem', folder), cwd: folder } });
    expect(tools.map(({ name }) => name)).toContain('read_text_file');
    const lines = [
      act('read_text_file', { path: '/etc/passwd' }),
      act('read_text_file', { file: 'age.txt' }),
      act('read_text_file', { path: 'age.txt' }),
      'Final Answer: forty-two',
    ];
    const { agent, episode, last } = await play(tools, lines);
    await agent.close!();
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(last).toContain('Access denied');
    expect(last).toContain("must have required property 'path'");
    expect(last).toContain('forty-two');
    expect(episode.metrics).toMatchObject({ tool_calls: 3, tool_failures: 2 });
    expect(episode.steps.at(-1)!.reward).toBe(1);
  });
});

describe('memory', () => {
  it('keeps a graph for each episode that has a server of its own', async () => {
    const MEMORY_FILE_PATH = join(folder, 'memory.jsonl');
    const given = { mcpServers: { memory: { ...stdio('memory'), env: { MEMORY_FILE_PATH }, scope: 'episode' } } };
    writeFileSync(join(folder, 'servers.json'), JSON.stringify(given));
    const tools = await mcpTools(await readMcpFile('servers.json', folder));
    const entities = [{ name: 'Ada', entityType: 'person', observations: ['writes programs'] }];
    const lines = [act('create_entities', { entities }), act('search_nodes', { query: 'programs' }), 'forty-two'];
    const { agent, episode, last } = await play(tools, lines);
    await agent.close!();
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(last.split('search_nodes').at(-1)).toContain('"name": "Ada"');
  });
});

describe('a call that is not answered', () => {
  it('is told to the policy at its deadline, and the episode goes on', async () => {
    const server = {
      command: process.execPath,
      args: [resolve('tests/support/mcp-server.mjs')],
      call_timeout_ms: 1000,
    };
    const tools = await mcpTools({ odd: server });
    const { agent, last, episode } = await play(tools, [act('hang', {}), act('say', { text: 'well' }), 'x']);
    await agent.close!();
    expect(last).toContain('Error: hang gave no result within 1000 ms');
    expect(last).toContain('Observation: well');
    expect(episode.outcome).toEqual({ kind: 'done' });
  });
});

describe('everything', () => {
  it('over stdio: pictures and resources are said in brackets', async () => {
    const tools = await mcpTools({ all: { ...stdio('everything'), max_result_length: 300 } });
    const names = tools.map(({ name }) => name);
    const image = names.find(name => /tiny-image/i.test(name))!;
    const lines = [act(image, {}), act('get-sum', { a: 2, b: 3 }), act('echo', { message: 'y'.repeat(1000) }), 'x'];
    const { agent, last } = await play(tools, lines);
    await agent.close!();
    expect(last).toMatch(/\[image image\/png, \d+ bytes\]/);
    expect(last).toContain('2 and 3 is 5');
    expect(last).toMatch(/characters left out/);
  });

  const port = freePort();
  const children: ReturnType<typeof spawn>[] = [];
  afterAll(() => {
    for (const child of children) child.kill();
  });

  it('over HTTP, and a server that goes away fails the episodes that call it', async () => {
    const PORT = String(await port);
    const child = spawn(process.execPath, [bin('everything'), 'streamableHttp'], { env: { ...process.env, PORT } });
    children.push(child);
    await new Promise<void>(ready => child.stderr!.on('data', data => /listening/i.test(String(data)) && ready()));
    const tools = await mcpTools({ all: { url: `http://127.0.0.1:${PORT}/mcp`, connect_timeout_ms: 5000 } });
    const { last } = await play(tools, [act('echo', { message: 'hello' }), 'x']);
    expect(last).toContain('Echo: hello');
    const ended = new Promise(end => child.once('exit', end));
    child.kill('SIGKILL');
    await ended;
    const { agent, episode } = await play(tools, [act('echo', { message: 'hello' }), 'x']);
    await agent.close!();
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'tool', step: 0 });
    expect((episode.outcome as { message: string }).message).toMatch(/MCP server all: echo: .*fetch failed/);
  });

  it('says which server cannot be reached', async () => {
    const url = `http://127.0.0.1:${await freePort()}/mcp`;
    await expect(mcpTools({ gone: { url } })).rejects.toThrow(`MCP server gone: cannot reach ${url}: fetch failed`);
  });
});

function freePort(): Promise<number> {
  return new Promise(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
