/**
 * An MCP server of a few lines, over stdio, for what well-kept servers never do: `node mcp-server.mjs <mode>`.
 * Its tool `say` answers {"text"}; `die` ends the process, `hang` never answers, `odd` answers in another shape,
 * `flood` answers 100 000 characters, `count` counts the calls that this process has had.
 */
import { createInterface } from 'node:readline';

const [mode = 'plain'] = process.argv.slice(2);
process.stderr.write(`mode ${mode}\n`);
if (mode === 'no-start') process.exit(3);

const schema = { type: 'object', properties: { text: { type: 'string' } } };
const tool = (name, inputSchema = schema) => ({ name, description: `To ${name}.`, inputSchema });
const TOOLS = ['say', 'die', 'hang', 'odd', 'flood', 'count'].map(name => tool(name));
let calls = 0;

const list = cursor => {
  if (mode === 'bad-schema') return { tools: [tool('say'), tool('crooked', { type: 'object', properties: { a: { type: 'strin' } } })] };
  if (mode === 'no-object') return { tools: [tool('crooked', { type: 'string' })] };
  if (mode === 'endless') return { tools: TOOLS, nextCursor: 'again' };
  if (mode === 'odd-list') return { tools: 'none' };
  if (mode !== 'pages') return { tools: TOOLS };
  const at = Number(cursor ?? 0);
  return { tools: TOOLS.slice(at, at + 2), ...(at + 2 < TOOLS.length ? { nextCursor: String(at + 2) } : {}) };
};

const call = (name, { text = '' }) => {
  calls += 1;
  if (name === 'die') {
    process.stderr.write('no more\n');
    process.exit(1);
  }
  if (name === 'odd') return { content: 7 };
  const said = { say: text, flood: 'x'.repeat(100_000), count: String(calls) }[name];
  return { content: [{ type: 'text', text: said }] };
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined || (method === 'tools/call' && params.name === 'hang')) continue;
  const result = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'odd', version: '1' },
    }),
    'tools/list': () => list(params.cursor),
    'tools/call': () => call(params.name, params.arguments ?? {}),
  }[method]?.();
  const answer = result === undefined ? { error: { code: -32601, message: `no ${method}` } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
}
