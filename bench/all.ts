import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The benches of speed, each in a process of its own, so that none inherits memory or threads of another. */
const SPEED = ['engine', 'tree', 'peers', 'int8', 'step', 'start', 'goals'] as const;

export async function run(): Promise<void> {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  for (const name of SPEED) {
    const { status } = spawnSync(process.execPath, ['--import', 'tsx', main, name], { stdio: 'inherit' });
    if (status !== 0) throw new Error(`bench ${name} ended with ${status}`);
  }
}
