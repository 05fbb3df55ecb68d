import { z } from 'zod';
import { options } from '../options/option.ts';

/** Where a command that serves listens. */
export const listenOptions = options({
  'serve.host': {
    schema: z.string().default('127.0.0.1'),
    help: 'Address to listen on; any other than loopback lets other machines in, who need the key',
  },
  'serve.port': { schema: z.int().min(0).max(65535).default(0), help: 'Port to listen on; 0 takes a free one' },
});
