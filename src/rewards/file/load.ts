import { preview } from '../../episode/explain.ts';
import { loadModule } from '../../modules/load.ts';
import { readRewardAnswer } from '../answer.ts';
import type { RewardFunction } from '../contracts.ts';

/** OpenRLHF's reward function: prompt and answer in one text, the prompt alone, the label; one of each for an answer. */
type RewardFunc = (queries: string[], prompts: string[], labels: string[]) => unknown;

/**
 * The reward function of a user's module, JavaScript or TypeScript: its default export, which takes a batch of answers
 * and gives one score for each, or its export `reward_func`, as OpenRLHF has it: `(queries, prompts, labels)` to a list of
 * rewards or `{rewards, scores?, extra_logs?}`. A relative path starts at the working directory.
 * @throws Error that names the file and what to do
 */
export async function loadRewardFile(path: string): Promise<RewardFunction> {
  const loaded = await loadModule(path, 'reward file');
  const { reward_func, default: byDefault } = loaded.exports;
  if (typeof reward_func === 'function') return fromRewardFunc(reward_func as RewardFunc, path);
  const found = reward_func ?? byDefault;
  if (typeof found === 'function') return found as RewardFunction;
  throw new Error(
    `reward file ${path}: exports ${preview(found)} as reward_func or default (${loaded.describe()}); ` +
      'export a function of a batch of answers that returns one score for each as default, or reward_func(queries, prompts, labels)',
  );
}

function fromRewardFunc(func: RewardFunc, path: string): RewardFunction {
  return async batch => {
    const queries = batch.map(({ query }) => query);
    const prompts = batch.map(({ prompt }) => prompt);
    const answer = await func(
      queries,
      prompts,
      batch.map(({ label }) => label),
    );
    try {
      return readRewardAnswer(Array.isArray(answer) ? { rewards: answer } : answer, batch.length);
    } catch (error) {
      throw new Error(`reward_func of ${path} ${(error as Error).message}`, { cause: error });
    }
  };
}
