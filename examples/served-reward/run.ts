/**
 * Two reward servers, a run that both of them reward, and one of them killed when the run is halfway:
 *
 *   npx tsx examples/served-reward/run.ts
 *
 * `--reward` names the reward model (runs/rlhf-1/rm/model, which the RLHF example makes); everything behind `--` goes
 * to `tokenloop rl`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    reward: { type: 'string', default: 'runs/rlhf-1/rm/model' },
    steps: { type: 'string', default: '20' },
  },
});
const STEPS = Number(values.steps);

function tokenloop(...words: string[]): ChildProcess {
  const main = join(import.meta.dirname, '../../src/cli/main.ts');
  return spawn(process.execPath, [...process.execArgv, main, ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** A reward server and the address that it says it has. */
async function startServer(): Promise<{ server: ChildProcess; url: string }> {
  const model = ['--reward.model_name_or_path', values.reward, '--reward.normalize_enable'];
  const server = tokenloop('serve-rm', ...model, '--serve.port', '0', '--engine.threads', '1');
  for await (const line of createInterface(server.stdout!)) {
    if (line.startsWith('url ')) return { server, url: line.slice(4) };
  }
  throw new Error('a reward server ended before it said its address');
}

const servers = await Promise.all([startServer(), startServer()]);
const [doomed, lasting] = servers as [(typeof servers)[0], (typeof servers)[0]];
try {
  console.log(`reward servers ${doomed.url} (pid ${doomed.server.pid}) and ${lasting.url} (pid ${lasting.server.pid})`);
  const job = tokenloop(
    ...['rl', '--config', join(import.meta.dirname, 'rl.yaml'), '--json', '--engine.threads', '1'],
    ...['--reward.remote_url', `${doomed.url},${lasting.url}`, '--train.max_steps', values.steps, ...positionals],
  );
  const ended = once(job, 'exit');
  for await (const line of createInterface(job.stdout!)) {
    if (!line.startsWith('{')) continue;
    const metrics = JSON.parse(line) as Record<string, number>;
    const [reward, failed] = ['rollout/reward_mean', 'rollout/failed'].map(name => metrics[name]);
    if (reward === undefined) continue;
    console.log(`step ${metrics.step}: reward ${reward.toFixed(3)}, failed episodes ${failed}`);
    if (metrics.step === Math.floor(STEPS / 2)) {
      doomed.server.kill('SIGKILL');
      console.log(`killed the server with pid ${doomed.server.pid}`);
    }
  }
  const [code] = (await ended) as [number | null];
  process.exitCode = code ?? 1;
} finally {
  // A server that is interrupted answers what is under way and ends.
  for (const { server } of servers) server.kill('SIGINT');
}
