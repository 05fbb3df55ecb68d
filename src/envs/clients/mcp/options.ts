import { z } from 'zod';
import { options } from '../../../options/option.ts';

/** Tools of MCP servers on the command line. */
export const mcpOptions = options({
  'env.mcp.servers': {
    schema: z.union([z.string().min(1), z.record(z.string(), z.unknown())]).optional(),
    help: 'The policy calls the tools of these MCP servers and reward.remote_url scores its episodes: a JSON file with mcpServers, or servers by name, as in {files: {command: node, args: [server.js]}}',
  },
});
