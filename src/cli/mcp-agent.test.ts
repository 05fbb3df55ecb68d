import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve as path } from 'node:path';
import { describe, expect, it } from 'vitest';
import { evaluationOptions } from '../config/eval.ts';
import { resolve } from '../config/load.ts';
import { testContext } from '../testing/executor-context.ts';
import { chooseAgent } from './agent.ts';

/** The tool agent of env.mcp.*. */

const cwd = mkdtempSync(join(tmpdir(), 'tokenloop-mcp-agent-'));
writeFileSync(join(cwd, 'reward.mjs'), 'export default batch => batch.map(({ text }) => (text === "hi" ? 1 : 0));\n');
const server = { command: process.execPath, args: [path('tests/support/mcp-server.mjs'), 'plain'] };
writeFileSync(join(cwd, 'servers.json'), JSON.stringify({ mcpServers: { odd: server } }));
writeFileSync(join(cwd, 'wrong.json'), '{"servers": {}}');
const choose = (...argv: string[]) => {
  const { values } = resolve(evaluationOptions, { argv, cwd });
  return chooseAgent(values, { cwd });
};
const reward = ['--reward.remote_url', 'reward.mjs'];

describe('env.mcp', () => {
  it.each([
    ['env.mcp.servers', JSON.stringify({ odd: server })],
    ['env.mcp.config', 'servers.json'],
  ])('%s makes a tool agent that the reward file scores', async (option, value) => {
    const agent = await choose(`--${option}`, value, ...reward);
    const lines = ['Action: say\nAction Input: {"text": "hi"}', 'Final Answer: hi'];
    const context = testContext({
      answers: (_, i) => lines[i] ?? '',
      contextLength: 8192,
      limits: { maxTokens: 8192 },
    });
    const task = { id: 't', prompt: 'Say hi', label: '', metadata: {} };
    const { outcome, steps, metrics } = await agent.run(task, context);
    await agent.close!();
    expect(outcome).toEqual({ kind: 'done' });
    expect(steps.map(step => step.reward)).toEqual([0, 1]);
    expect(metrics).toMatchObject({ tool_calls: 1, tool_failures: 0 });
  });

  it.each([
    [['--env.mcp.config', 'servers.json'], /env.mcp.config needs /],
    [['--env.mcp.config', 'servers.json', '--env.mcp.servers', '{a: {command: b}}', ...reward], /leave out one/],
    [['--env.mcp.config', 'servers.json', '--agent.env', 'calculator', ...reward], /leave out agent.env/],
    [['--env.mcp.config', 'none.json', ...reward], /env.mcp.config none.json: ENOENT/],
    [['--env.mcp.config', 'wrong.json', ...reward], /env.mcp.config wrong.json: mcpServers: /],
    [['--env.mcp.servers', '{a: {url: nowhere}}', ...reward], /MCP server a: url: /],
    [['--env.mcp.servers', '{}', ...reward], /no MCP server is given/],
  ])('refuses %o', async (argv, message) => {
    await expect(choose(...argv)).rejects.toThrow(message);
  });
});
