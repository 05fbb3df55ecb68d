import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomic } from '../../storage/atomic.ts';
import {
  accessOf,
  cachedCommit,
  fetchFiles,
  type HubOptions,
  isOffline,
  listFiles,
  type Place,
  resolveRevision,
} from './hub.ts';
import type { HubFile } from './hub-download.ts';
import { type HubAccess, HubError } from './hub-request.ts';

type HubLibrary = typeof import('@huggingface/hub');

/** What the hub has of a dataset. */
export interface Repository {
  /** Of its files. */
  readonly paths: readonly string[];
  /** Whether they are the hub's own conversion to Parquet. */
  readonly converted: boolean;
  /** Fetches the README.md of the dataset; undefined where there is none. */
  readonly card: () => Promise<string | undefined>;
}

export interface DatasetOptions extends Omit<HubOptions, 'beforeWeights'> {
  /** What the dataset's own revisions do not tell: which of its files are wanted. Throws when there are none. */
  readonly choose: (repository: Repository) => Promise<readonly string[]>;
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
  hub: HubLibrary,
  access: HubAccess,
  place: Place,
  { choose, choice, onProgress }: DatasetOptions,
) {
  const listed = await listFiles(hub, access, place.commit);
  const converted = access.revision === CONVERTED;
  const card = converted
    ? () => cardOfMain(hub, access, place.folder)
    : () => cardAmong(hub, access, place, listed.get(CARD));
  const paths = await choose({ paths: [...listed.keys()].sort(), converted, card });
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

const CARD = 'README.md';

/** The conversion to Parquet has no card of its own. */
async function cardOfMain(hub: HubLibrary, access: HubAccess, folder: string): Promise<string | undefined> {
  const main = { ...access, revision: 'main' };
  const commit = await resolveRevision(hub, main);
  const listed = await listFiles(hub, main, commit);
  return cardAmong(hub, main, { commit, folder, directory: join(folder, 'snapshots', commit) }, listed.get(CARD));
}

async function cardAmong(
  hub: HubLibrary,
  access: HubAccess,
  place: Place,
  card: HubFile | undefined,
): Promise<string | undefined> {
  if (card === undefined) return undefined;
  await fetchFiles(hub, access, place, [card], undefined);
  return readFileSync(join(place.directory, CARD), 'utf8');
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
