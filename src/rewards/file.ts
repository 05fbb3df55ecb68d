import { preview } from '../episode/explain.ts';
import { loadModule } from '../modules/load.ts';
import type { RewardFunction } from './contracts.ts';

/**
 * The reward function of a user's module, JavaScript or TypeScript: its export `reward_func`, or its default export. A
 * relative path starts at the working directory.
 * @throws Error that names the file and what to do
 */
export async function loadRewardFile(path: string): Promise<RewardFunction> {
  const loaded = await loadModule(path, 'reward file');
  const { reward_func, default: byDefault } = loaded.exports;
  const found = reward_func ?? byDefault;
  if (typeof found === 'function') return found as RewardFunction;
  throw new Error(
    `reward file ${path}: exports ${preview(found)} as reward_func or default (${loaded.describe()}); ` +
      'export a function of a batch of answers that returns one score for each',
  );
}
