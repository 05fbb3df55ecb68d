import { readdirSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { latestDirectory } from '../../storage/atomic.ts';
import { readConfig } from './directory.ts';
import { fetchModel, type HubOptions, isHubName } from './hub.ts';
import { HubError } from './hub-request.ts';
import { weightsAmong } from './shards.ts';

export interface SourceOptions extends Omit<HubOptions, 'beforeWeights'> {
  /** Relative paths start here; the working directory when not given. */
  readonly base?: string | undefined;
}

/**
 * The directory of a model, which is given by its path or by its name on the Hugging Face hub (`organisation/name`;
 * see `fetchModel`). A directory of that path goes first. Throws when there is neither, and for weights that are only
 * there as a pickle.
 */
export async function modelDirectory(source: string, options: SourceOptions = {}): Promise<string> {
  const path = latestDirectory(resolve(options.base ?? '.', source));
  const there = statSync(path, { throwIfNoEntry: false });
  if (there !== undefined) {
    if (!there.isDirectory()) throw new Error(`${path}: a file; give the directory of a checkpoint`);
    if (options.revision !== undefined) {
      throw new Error(`${path}: a directory has no revision ${options.revision}; give a revision only with a hub name`);
    }
    weightsAmong(readdirSync(path), path);
    return path;
  }
  if (!isHubName(source)) {
    throw new Error(
      `${path}: no such directory; give one with a checkpoint in it, or the name of a model on the Hugging Face hub (organisation/name)`,
    );
  }
  try {
    return await fetchModel(source, { ...options, beforeWeights: directory => void readConfig(directory) });
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    throw new Error(`${error.message} (${path} is no directory either)`, { cause: error });
  }
}
