import { spawn } from 'node:child_process';
import { serve } from './server.js';

/** The environment's server and the job that learns from it; options go to the job. */

const server = await serve(0);
const url = `http://127.0.0.1:${server.address().port}`;
const words = ['tokenloop', 'rl', '--config', 'examples/nemo-gym/rl.yaml', '--env.nemo_gym.url', url];
const job = spawn('npx', [...words, ...process.argv.slice(2)], { stdio: 'inherit', shell: process.platform === 'win32' });
job.on('exit', code => {
  process.exitCode = code ?? 1;
  server.closeAllConnections();
  server.close();
});
