import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A Hugging Face hub on this machine: revisions, file trees in pages, files with redirects to another origin. */

export const COMMIT = 'c0ffee'.padEnd(40, '0');
/** Files of this size or more lie in the large-file store. */
const LARGE = 10_000;
const PAGE = 3;

export interface HubServer {
  readonly endpoint: string;
  /** `GET /path authorization range`, in order; the last two as far as they were sent. */
  readonly requests: readonly string[];
  /** How often the content of a file was asked for, probes of its size not counted. */
  downloads(path: string): number;
  close(): Promise<void>;
}

export interface RepositoryOptions {
  readonly kind?: 'models' | 'datasets';
  /** Branches and tags. */
  readonly revisions?: readonly string[];
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => boolean;

/** `intercept` may answer in the hub's place, and says whether it did. */
export async function hubServer(
  model: string,
  files: Readonly<Record<string, Uint8Array>>,
  intercept: Handler = () => false,
  { kind = 'models', revisions = ['main', 'v1'] }: RepositoryOptions = {},
): Promise<HubServer> {
  const requests: string[] = [];
  const listen = async (handle: (request: IncomingMessage, response: ServerResponse) => void) => {
    const server = createServer((request, response) => {
      const { authorization = '', range = '' } = request.headers;
      requests.push(`${request.method} ${request.url} ${authorization} ${range}`.trim().replace(/ +/g, ' '));
      if (!intercept(request, response)) handle(request, response);
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  };
  const store = await listen((request, response) => {
    sendFile(files[decodeURIComponent(request.url!.slice(1))]!, request, response);
  });
  const hub = await listen((request, response) => {
    const url = new URL(request.url!, hub.origin);
    const path = decodeURIComponent(url.pathname);
    const repository = kind === 'models' ? `/${model}/` : `/${kind}/${model}/`;
    const content = files[path.replace(`${repository}resolve/${COMMIT}/`, '')];
    if (path.startsWith(`/api/${kind}/${model}/revision/`)) {
      const revision = path.replace(`/api/${kind}/${model}/revision/`, '');
      if (revision === COMMIT || revisions.includes(revision)) sendInfo(model, response);
      else refuse(response, 404, 'RevisionNotFound');
    } else if (path === `/api/${kind}/${model}/tree/${COMMIT}`) {
      sendTree(files, url, response);
    } else if (content === undefined) {
      refuse(response, 404, path.startsWith(repository) ? 'EntryNotFound' : 'RepoNotFound');
    } else if (content.length < LARGE) {
      sendFile(content, request, response);
    } else {
      const headers = { 'x-linked-size': content.length, 'x-linked-etag': `"${sha256(content)}"` };
      response
        .writeHead(302, {
          ...headers,
          location: `${store.origin}/${path.replace(`${repository}resolve/${COMMIT}/`, '')}`,
        })
        .end();
    }
  });
  const servers = [hub.server, store.server];
  return {
    endpoint: hub.origin,
    requests,
    downloads: path =>
      requests.filter(line => line.includes(` /${path}`) || line.includes(`${COMMIT}/${path}`)).filter(isDownload)
        .length,
    async close() {
      for (const server of servers) server.closeAllConnections();
      await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))));
    },
  };
}

const isDownload = (line: string) => !line.endsWith('bytes=0-0');
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** Id of the git blob with this content. */
export const gitId = (bytes: Uint8Array) =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

export function refuse(
  response: ServerResponse,
  status: number,
  code = '',
  headers: Record<string, string> = {},
): void {
  const error = code && { 'x-error-code': code };
  response.writeHead(status, { 'content-type': 'application/json', ...error, ...headers }).end('{"error":"refused"}');
}

function sendJson(response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
}

function sendInfo(model: string, response: ServerResponse): void {
  sendJson(response, { _id: '1', id: model, sha: COMMIT, private: false, gated: false, lastModified: 0 });
}

function sendTree(files: Readonly<Record<string, Uint8Array>>, url: URL, response: ServerResponse): void {
  const start = Number(url.searchParams.get('cursor') ?? 0);
  const entries = Object.entries(files).map(([path, bytes]) => {
    const size = bytes.length;
    const lfs = size >= LARGE ? { lfs: { oid: sha256(bytes), size, pointerSize: 130 } } : {};
    return { type: 'file', path, size, oid: gitId(bytes), ...lfs };
  });
  const all = [{ type: 'directory', path: 'onnx', oid: '0'.repeat(40), size: 0 }, ...entries];
  url.searchParams.set('cursor', String(start + PAGE));
  const link = start + PAGE < all.length ? { link: `<${url.href}>; rel="next"` } : undefined;
  sendJson(response, all.slice(start, start + PAGE), link);
}

function sendFile(content: Uint8Array, request: IncomingMessage, response: ServerResponse): void {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  const headers = { etag: `"${content.length >= LARGE ? sha256(content) : gitId(content)}"` };
  if (first === undefined) {
    response.writeHead(200, { ...headers, 'content-length': content.length }).end(content);
    return;
  }
  const part = content.subarray(Number(first), last ? Number(last) + 1 : content.length);
  const range = `bytes ${first}-${Number(first) + part.length - 1}/${content.length}`;
  response.writeHead(206, { ...headers, 'content-length': part.length, 'content-range': range }).end(part);
}
