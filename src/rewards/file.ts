import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { preview } from '../episode/explain.ts';
import { messageOf } from '../episode/failure.ts';
import type { RewardFunction } from './contracts.ts';

/**
 * The reward function of a user's module (.js, .mjs, or .ts where this Node runs it): its export `reward_func`, or its
 * default export. A relative path starts at the working directory.
 * @throws Error that names the file and what to do
 */
export async function loadRewardFile(path: string): Promise<RewardFunction> {
  const file = resolve(path);
  if (!existsSync(file)) throw new Error(`reward file ${path}: no such file (looked for ${file})`);
  const { reward_func, default: byDefault } = await load(path, file);
  const found = reward_func ?? byDefault;
  if (typeof found === 'function') return found as RewardFunction;
  throw new Error(
    `reward file ${path}: exports ${preview(found)} as reward_func or default; ` +
      'export a function of a batch of answers that returns one score for each',
  );
}

async function load(path: string, file: string): Promise<{ reward_func?: unknown; default?: unknown }> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    const code = (error as { code?: unknown } | undefined)?.code;
    const advice =
      code === 'ERR_UNKNOWN_FILE_EXTENSION'
        ? `; Node ${process.version} does not run TypeScript: write it as .mjs, or use Node 22.18 or newer`
        : '';
    throw new Error(`reward file ${path}: ${messageOf(error)}${advice}`, { cause: error });
  }
}
