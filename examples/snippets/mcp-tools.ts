import { toolAgent } from 'tokenloop';
import { mcpTools } from 'tokenloop/envs';

const tools = await mcpTools({
  files: { command: 'npx', args: ['@modelcontextprotocol/server-filesystem', 'notes'], tools: ['read_text_file'] },
  search: { url: 'https://mcp.example.com/mcp', headers: { authorization: 'Bearer …' }, prefix: 'web_' },
});
export const agent = toolAgent({
  tools,
  reward: batch => batch.map(({ text, label }) => (text === label ? 1 : 0)),
});
