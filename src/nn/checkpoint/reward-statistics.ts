import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../storage/atomic.ts';

/** Mean and standard deviation of a reward model's scores on held-out answers, by which they can be normalised. */
export interface RewardStatistics {
  readonly mean: number;
  /** Above 0. */
  readonly std: number;
}

/** Adds them to the `config.json` of a checkpoint, where OpenRLHF keeps them. */
export async function writeRewardStatistics(directory: string, { mean, std }: RewardStatistics): Promise<void> {
  const path = join(directory, 'config.json');
  const config = JSON.parse(readFileSync(path, 'utf8'));
  await writeFileAtomic(path, `${JSON.stringify({ ...config, mean, std }, null, 2)}\n`);
}

/**
 * Those of a checkpoint.
 * @throws Error that says what to do when it has none
 */
export function readRewardStatistics(directory: string): RewardStatistics {
  const path = join(directory, 'config.json');
  const { mean, std } = JSON.parse(readFileSync(path, 'utf8'));
  if (typeof mean === 'number' && Number.isFinite(mean) && typeof std === 'number' && std > 0) return { mean, std };
  throw new Error(
    `${path} has no mean and std of its rewards (mean ${JSON.stringify(mean)}, std ${JSON.stringify(std)}); train it with tokenloop rm, or switch normalisation off`,
  );
}
