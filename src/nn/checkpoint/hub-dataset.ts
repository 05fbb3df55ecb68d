import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../storage/atomic.ts';
import { accessOf, cachedCommit, fetchFiles, type HubOptions, isOffline, listFiles, resolveRevision } from './hub.ts';
import { type HubAccess, HubError } from './hub-request.ts';

export interface DatasetOptions extends Omit<HubOptions, 'beforeWeights'> {
  /** What the dataset's own revisions do not tell: which of its files are wanted. Throws when there are none. */
  readonly choose: (paths: readonly string[]) => readonly string[];
  /** Tells one choice from another in the cache. */
  readonly choice: string;
}

/** Where the hub keeps every dataset it can read as `config/split/0000.parquet`. */
const CONVERTED = 'refs/convert/parquet';

/**
 * Fetches the chosen files of a dataset of the Hugging Face hub into the cache that Python's huggingface_hub shares:
 * of the given revision, otherwise of the hub's conversion to Parquet, otherwise of `main`. Gives their paths in the
 * repository and on this machine. Without a network, what was fetched before serves.
 */
export async function fetchDataset(
  name: string,
  options: DatasetOptions,
): Promise<readonly { readonly label: string; readonly path: string }[]> {
  const hub = await import('@huggingface/hub');
  const env = options.env ?? process.env;
  const folder = join(options.cacheDir ?? hub.getHFHubCachePath(), hub.getRepoFolderName({ type: 'dataset', name }));
  const revisions = options.revision === undefined ? [CONVERTED, 'main'] : [options.revision];
  const cached = revisions
    .map(revision => fromCache(folder, revision, options.choice))
    .find(files => files !== undefined);
  if (isOffline(env)) {
    if (cached) return cached;
    throw new HubError(
      `the dataset ${name} (${options.choice}) is not in ${folder}, and HF_HUB_OFFLINE forbids to fetch it; unset it, or give the path of a copy`,
    );
  }
  const failures: HubError[] = [];
  for (const revision of revisions) {
    const access = accessOf(name, { ...options, revision }, 'dataset');
    try {
      const commit = await resolveRevision(hub, access);
      return await fetchChosen(hub, access, { commit, folder, directory: join(folder, 'snapshots', commit) }, options);
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      if (error.unreachable && cached) return cached;
      failures.push(error);
      if (!error.noRevision) throw error;
    }
  }
  throw failures.at(-1)!;
}

async function fetchChosen(
  hub: typeof import('@huggingface/hub'),
  access: HubAccess,
  place: { readonly commit: string; readonly folder: string; readonly directory: string },
  { choose, choice, onProgress }: DatasetOptions,
) {
  const listed = await listFiles(hub, access, place.commit);
  const paths = choose([...listed.keys()].sort());
  await fetchFiles(
    hub,
    access,
    place,
    paths.map(path => listed.get(path)!),
    onProgress,
  );
  const { commit, folder, directory } = place;
  await writeFileAtomic(listFile(folder, commit, choice), JSON.stringify(paths));
  if (commit !== access.revision) await writeFileAtomic(join(folder, 'refs', access.revision), commit);
  return paths.map(label => ({ label, path: join(directory, label) }));
}

/** A list of files is written when all of them are there. */
function fromCache(folder: string, revision: string, choice: string) {
  const commit = cachedCommit(folder, revision);
  if (commit === undefined || !existsSync(listFile(folder, commit, choice))) return undefined;
  const labels = JSON.parse(readFileSync(listFile(folder, commit, choice), 'utf8')) as readonly string[];
  const files = labels.map(label => ({ label, path: join(folder, 'snapshots', commit, label) }));
  return files.every(({ path }) => existsSync(path)) ? files : undefined;
}

function listFile(folder: string, commit: string, choice: string): string {
  return join(folder, 'tokenloop', commit, `${choice.replace(/[^\w.-]/g, '-')}.json`);
}
