import { z } from 'zod';
import { options } from '../../../options/option.ts';

/** Tools of MCP servers on the command line. */
export const mcpOptions = options({
  'env.mcp.servers': {
    schema: z.record(z.string(), z.unknown()).optional(),
    help: 'The policy calls the tools of these MCP servers and reward.remote_url scores its episodes: servers by name, as in {files: {command: node, args: [server.js]}}',
  },
  'env.mcp.config': {
    schema: z.string().min(1).optional(),
    help: 'The same from a JSON file with mcpServers, as other MCP clients have it',
  },
});
