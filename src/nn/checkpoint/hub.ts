import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../episode/failure.ts';
import { writeFileAtomic } from '../../storage/atomic.ts';
import { COMPANIONS, CONFIG_FILE } from './directory.ts';
import { downloadBlob, type HubFile, linkBlob, sizeOf } from './hub-download.ts';
import { type HubAccess, HubError, hubFetch } from './hub-request.ts';
import { INDEX_FILE, readIndex, WEIGHTS_FILE, weightsAmong } from './shards.ts';

export interface HubOptions {
  /** Branch, tag or commit; `main` when not given. */
  readonly revision?: string | undefined;
  /** Where fetched files are kept; HF_HUB_CACHE, or `hub` in HF_HOME, when not given. */
  readonly cacheDir?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: HubProgress) => void) | undefined;
  /** Called with the directory when everything but the weights is there; what it throws spares fetching them. */
  readonly beforeWeights?: ((directory: string) => void) | undefined;
  /** HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE are read from it; the process's own when not given. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Requests for one thing at most, and the wait before the second, which then doubles; 5 and 1000 when not given. */
  readonly attempts?: number | undefined;
  readonly delayMs?: number | undefined;
  /** Longest silence of the hub; 30000 when not given. */
  readonly timeoutMs?: number | undefined;
}

export interface HubProgress {
  readonly commit: string;
  /** Of the repository, being fetched. */
  readonly file: string;
  /**
   * In bytes, of the files that are fetched together: first the small ones, then the weights. What an earlier run left
   * counts as done.
   */
  readonly done: number;
  readonly total: number;
}

const COMMIT = /^[0-9a-f]{40}$/;
const DIGEST = /^([0-9a-f]{40}|[0-9a-f]{64})$/;
const MAX_ENTRIES = 10_000;

/** Whether it has the form `organisation/name`. */
export function isHubName(text: string): boolean {
  return /^\w[\w.-]*\/\w[\w.-]*$/.test(text) && text.length <= 96 && !/--|\.\./.test(text);
}

/**
 * The directory of a model of the Hugging Face hub in the local cache, which has the layout that Python's
 * huggingface_hub uses and shares with it. What is not there is fetched: configuration, tokenizer, chat template and
 * safetensors, nothing else. Weights come last, so that a directory which has them all is whole.
 */
export async function fetchModel(model: string, options: HubOptions = {}): Promise<string> {
  const hub = await import('@huggingface/hub');
  const access = accessOf(model, options);
  const folder = join(
    options.cacheDir ?? hub.getHFHubCachePath(),
    hub.getRepoFolderName({ type: 'model', name: model }),
  );
  const cached = cachedCommit(folder, access.revision);
  const snapshot = (commit: string) => join(folder, 'snapshots', commit);
  const isWhole = cached !== undefined && isComplete(snapshot(cached));
  if (isWhole && cached === access.revision) return snapshot(cached);
  if (isOffline(options.env ?? process.env)) {
    if (isWhole) return snapshot(cached);
    throw new HubError(
      `${model} (${access.revision}) is not whole in ${folder}, and HF_HUB_OFFLINE forbids to fetch it; unset it, or give the directory of a copy`,
    );
  }
  let commit: string;
  try {
    commit = await resolveRevision(hub, access);
  } catch (error) {
    if (isWhole && error instanceof HubError && error.unreachable) return snapshot(cached);
    throw error;
  }
  const directory = snapshot(commit);
  if (!isComplete(directory)) await fetchSnapshot(hub, access, { commit, folder, directory }, options);
  if (commit !== access.revision) await writeFileAtomic(join(folder, 'refs', access.revision), commit);
  return directory;
}

type HubLibrary = typeof import('@huggingface/hub');

/** How a repository is asked for. */
export function accessOf(model: string, options: HubOptions, kind: HubAccess['kind'] = 'model'): HubAccess {
  const env = options.env ?? process.env;
  const revision = options.revision ?? 'main';
  if (!/^\w[\w./-]*$/.test(revision) || /\.\.|\/\/|\/$/.test(revision)) {
    throw new HubError(`the revision is ${JSON.stringify(revision)}; give a branch, a tag or a commit`);
  }
  const endpoint = (env.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, '');
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint)) {
    throw new HubError(`HF_ENDPOINT is ${JSON.stringify(endpoint)}; give an address such as https://huggingface.co`);
  }
  const token = env.HF_TOKEN?.trim() || undefined;
  if (token !== undefined && !/^[!-~]+$/.test(token)) {
    throw new HubError('HF_TOKEN has characters that no token has; set it to the token alone');
  }
  return {
    kind,
    model,
    revision,
    endpoint,
    token,
    signal: options.signal,
    attempts: options.attempts ?? 5,
    delayMs: options.delayMs ?? 1000,
    timeoutMs: options.timeoutMs ?? 30_000,
  };
}

/** Whether the cache must do. */
export function isOffline({ HF_HUB_OFFLINE: offline = '' }: Readonly<Record<string, string | undefined>>): boolean {
  return /^(1|true|yes|on)$/i.test(offline);
}

/** The commit of a revision when it was last fetched. */
export function cachedCommit(folder: string, revision: string): string | undefined {
  if (COMMIT.test(revision)) return revision;
  const ref = join(folder, 'refs', revision);
  if (!existsSync(ref)) return undefined;
  const commit = readFileSync(ref, 'utf8').trim();
  return COMMIT.test(commit) ? commit : undefined;
}

/** Links lead to whole files only. */
function isComplete(directory: string): boolean {
  const has = (name: string) => existsSync(join(directory, name));
  if (!has(CONFIG_FILE) || !has('tokenizer.json')) return false;
  if (has(WEIGHTS_FILE)) return true;
  return has(INDEX_FILE) && Object.values(readIndex(join(directory, INDEX_FILE))).every(has);
}

/** What the library throws of its own about an answer says little: whoever answered does not speak the protocol. */
async function speaking<T>({ endpoint, signal }: HubAccess, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof HubError) throw error;
    throw new HubError(`${endpoint} does not answer like a hub (${messageOf(error)}); check HF_ENDPOINT`, {
      cause: error,
    });
  }
}

/** The commit of a revision now. */
export async function resolveRevision(hub: HubLibrary, access: HubAccess): Promise<string> {
  const { model: name, revision, endpoint: hubUrl } = access;
  const request = { name, revision, hubUrl, fetch: hubFetch(access), additionalFields: ['sha' as const] };
  const { sha } = await speaking<{ sha: string }>(access, () =>
    access.kind === 'dataset' ? hub.datasetInfo(request) : hub.modelInfo(request),
  );
  if (COMMIT.test(sha)) return sha;
  throw new HubError(`${hubUrl} says that ${name} is at ${JSON.stringify(sha)}, which is no commit; check HF_ENDPOINT`);
}

/** The files of the top folder by name, of a dataset those of all folders. */
export async function listFiles(hub: HubLibrary, access: HubAccess, commit: string): Promise<Map<string, HubFile>> {
  const { endpoint: hubUrl } = access;
  const repo = repoOf(access);
  const files = new Map<string, HubFile>();
  return speaking(access, async () => {
    let count = 0;
    const recursive = access.kind === 'dataset';
    for await (const entry of hub.listFiles({ repo, recursive, revision: commit, hubUrl, fetch: hubFetch(access) })) {
      if (++count > MAX_ENTRIES) throw new Error(`${access.model} lists more than ${MAX_ENTRIES} files`);
      if (entry.type !== 'file') continue;
      const { path, lfs } = entry;
      const [size, digest] = [lfs?.size ?? entry.size, lfs?.oid ?? entry.oid];
      if (digest === undefined || !DIGEST.test(digest) || !Number.isSafeInteger(size) || size < 0) {
        throw new Error(`the entry of ${path} has size ${size} and digest ${digest}`);
      }
      files.set(path, { path, size, digest });
    }
    return files;
  });
}

function repoOf({ kind, model }: HubAccess) {
  return { type: kind, name: model };
}

export interface Place {
  readonly commit: string;
  readonly folder: string;
  readonly directory: string;
}

async function fetchSnapshot(hub: HubLibrary, access: HubAccess, place: Place, options: HubOptions): Promise<void> {
  const listed = await listFiles(hub, access, place.commit);
  const where = `${access.model} (${access.revision})`;
  const weights = weightsAmong([...listed.keys()], where);
  for (const name of [CONFIG_FILE, 'tokenizer.json', weights ?? WEIGHTS_FILE]) {
    if (!listed.has(name)) throw new HubError(`${where} has no ${name}; give a model in the form Transformers saves`);
  }
  const get = (files: readonly string[]) =>
    fetchFiles(
      hub,
      access,
      place,
      files.map(name => listed.get(name)!),
      options.onProgress,
    );
  await get([CONFIG_FILE, ...COMPANIONS].filter(name => listed.has(name)));
  options.beforeWeights?.(place.directory);
  if (weights === WEIGHTS_FILE) return get([WEIGHTS_FILE]);
  await get([INDEX_FILE]);
  const shards = [...new Set(Object.values(readIndex(join(place.directory, INDEX_FILE))))];
  const missing = shards.find(name => !listed.has(name));
  if (missing)
    throw new HubError(`${where} has no ${missing}, though its ${INDEX_FILE} names it; use another revision`);
  await get(shards);
}

/** Fetches files that are not there yet, in order. */
export async function fetchFiles(
  hub: HubLibrary,
  access: HubAccess,
  { commit, folder, directory }: Place,
  files: readonly HubFile[],
  onProgress: HubOptions['onProgress'],
): Promise<void> {
  const sizes = await Promise.all(files.map(file => sizeOf(join(directory, file.path))));
  const needed = files.filter((file, i) => sizes[i] !== file.size);
  const total = needed.reduce((sum, { size }) => sum + size, 0);
  let before = 0;
  for (const file of needed) {
    const report = (bytes: number) => onProgress?.({ commit, file: file.path, done: before + bytes, total });
    const blob = await downloadBlob(file, await addressOf(hub, access, commit, file), join(folder, 'blobs'), {
      ...access,
      fetch: hubFetch(access, 'long'),
      onBytes: report,
    });
    await linkBlob(blob, join(directory, file.path));
    before += file.size;
    report(0);
  }
}

/** Where the content of a file is. */
async function addressOf(hub: HubLibrary, access: HubAccess, commit: string, { path, size }: HubFile): Promise<string> {
  const { model, endpoint: hubUrl } = access;
  const repo = repoOf(access);
  const fetch = hubFetch(access);
  const info = await speaking(access, () => hub.fileDownloadInfo({ repo, path, revision: commit, hubUrl, fetch }));
  if (info?.size === size) return info.url;
  throw new HubError(
    `${hubUrl} lists ${path} of ${model} with ${size} bytes and offers ${info?.size ?? 'none'}; try again, or check HF_ENDPOINT`,
  );
}
