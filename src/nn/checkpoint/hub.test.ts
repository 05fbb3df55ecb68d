import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { COMMIT, gitId, type Handler, type HubServer, hubServer, refuse } from '../../../tests/support/hub-server.ts';
import { fetchModel, type HubOptions, type HubProgress } from './hub.ts';

const MODEL = 'org/small';
const text = (content: string) => new TextEncoder().encode(content);
/** 30 kB that no part of it repeats. */
const weights = (seed: number) => Uint8Array.from({ length: 30_000 }, (_, i) => (i * i * seed + (i >> 8)) & 255);
const INDEX = JSON.stringify({
  weight_map: { a: 'model-00001-of-00002.safetensors', b: 'model-00002-of-00002.safetensors' },
});
const SMALL = {
  'config.json': text('{}'),
  'tokenizer.json': text('{"model":{}}'),
  'chat_template.jinja': text('{{x}}'),
};
const FILES = {
  ...SMALL,
  'README.md': text('# small'),
  'pytorch_model.bin': weights(3),
  'model.safetensors': weights(1),
};
const SHARDED = {
  ...SMALL,
  'model.safetensors.index.json': text(INDEX),
  'model-00001-of-00002.safetensors': weights(1),
  'model-00002-of-00002.safetensors': weights(2),
};

let cache: string;
let server: HubServer | undefined;
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'tokenloop-hub-'));
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(cache, { recursive: true });
});

/** Fetches from a hub of its own, which holds `files`. */
async function fetchFrom(
  files: Readonly<Record<string, Uint8Array>>,
  { intercept, env, ...options }: HubOptions & { readonly intercept?: Handler } = {},
): Promise<string> {
  await server?.close();
  server = await hubServer(MODEL, files, intercept);
  return fetchAgain({ env: { HF_ENDPOINT: server.endpoint, ...env }, ...options });
}

const fetchAgain = (options: HubOptions = {}) =>
  fetchModel(MODEL, {
    cacheDir: cache,
    env: { HF_ENDPOINT: server!.endpoint },
    attempts: 3,
    delayMs: 1,
    timeoutMs: 5000,
    ...options,
  });

const folder = () => join(cache, 'models--org--small');
const isContent = ({ url, headers }: IncomingMessage) => url === '/model.safetensors' && headers.range !== 'bytes=0-0';

/** Sends the first `bytes` of the weights as often as `times`, and breaks off. */
function breakingOff(bytes: number, times = Number.POSITIVE_INFINITY): Handler {
  let count = 0;
  return (request, response) => {
    if (!isContent(request) || count++ >= times) return false;
    const start = Number(/\d+/.exec(request.headers.range ?? '')?.[0] ?? 0);
    const status = start > 0 ? 206 : 200;
    response.writeHead(status, { 'content-length': 30_000 - start });
    response.write(FILES['model.safetensors'].subarray(start, Math.min(start + bytes, 30_000)), () =>
      response.destroy(),
    );
    return true;
  };
}

describe('fetchModel', () => {
  it('fetches what a model needs and nothing else, into the layout of the Python library', async () => {
    const progress: HubProgress[] = [];
    const directory = await fetchFrom(FILES, { onProgress: report => progress.push(report) });
    expect(directory).toBe(join(folder(), 'snapshots', COMMIT));
    const expected = ['chat_template.jinja', 'config.json', 'model.safetensors', 'tokenizer.json'];
    expect(readdirSync(directory).sort()).toEqual(expected);
    expect(Uint8Array.from(readFileSync(join(directory, 'model.safetensors')))).toEqual(FILES['model.safetensors']);
    expect(readFileSync(join(folder(), 'refs', 'main'), 'utf8')).toBe(COMMIT);
    const blob = join('..', '..', 'blobs', gitId(FILES['config.json']));
    expect(readlinkSync(join(directory, 'config.json'))).toBe(blob);
    expect(readdirSync(join(folder(), 'blobs'))).toHaveLength(4);
    expect(progress.at(-1)).toEqual({ commit: COMMIT, file: 'model.safetensors', done: 30_000, total: 30_000 });
    expect(server!.downloads('pytorch_model.bin') + server!.downloads('README.md')).toBe(0);
  });

  it('asks only for the commit when it has everything, and for nothing when the commit is given', async () => {
    const directory = await fetchFrom(FILES);
    const before = server!.requests.length;
    expect(await fetchAgain()).toBe(directory);
    expect(server!.requests.slice(before)).toEqual([
      expect.stringMatching(/^GET \/api\/models\/org\/small\/revision\/main/),
    ]);
    expect(await fetchAgain({ revision: COMMIT })).toBe(directory);
    expect(server!.requests).toHaveLength(before + 1);
  });

  it('fetches the shards that the index names', async () => {
    const directory = await fetchFrom(
      { ...SHARDED, 'model-00003-of-00003.safetensors': weights(5) },
      { revision: 'v1' },
    );
    expect(readdirSync(directory).filter(name => name.includes('-of-'))).toHaveLength(2);
    expect(readFileSync(join(folder(), 'refs', 'v1'), 'utf8')).toBe(COMMIT);
  });

  it('shows the token to the hub and to nobody else', async () => {
    await fetchFrom(FILES, { env: { HF_TOKEN: 'secret' } });
    const shown = (line: string) => line.includes(' Bearer secret');
    expect(server!.requests.filter(line => shown(line) !== / \/(api|org)\//.test(line))).toEqual([]);
    expect(server!.requests.filter(line => !shown(line))).toEqual([
      'GET /model.safetensors bytes=0-0',
      'GET /model.safetensors',
    ]);
  });

  it('says nothing on its own', async () => {
    const methods = ['log', 'debug', 'info', 'warn', 'error'] as const;
    const spies = methods.map(method => vi.spyOn(console, method));
    await fetchFrom(FILES);
    for (const spy of spies) expect(spy).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });

  it('lets the caller refuse the model before its weights are fetched', async () => {
    const beforeWeights = (directory: string) => {
      throw new Error(`${readdirSync(directory).length} files, and not one I like`);
    };
    await expect(fetchFrom(FILES, { beforeWeights })).rejects.toThrow('3 files, and not one I like');
    expect(server!.downloads('model.safetensors')).toBe(0);
  });

  it('stops when it is told to, and continues from there', async () => {
    const stop = new AbortController();
    const onProgress = ({ file }: HubProgress) => file === 'model.safetensors' && stop.abort(new Error('enough'));
    const hanging: Handler = (request, response) => {
      if (!isContent(request)) return false;
      response.writeHead(200, { 'content-length': 30_000 });
      response.write(FILES['model.safetensors'].subarray(0, 20_000));
      return true;
    };
    await expect(fetchFrom(FILES, { intercept: hanging, signal: stop.signal, onProgress })).rejects.toThrow('enough');
    expect(existsSync(join(folder(), 'refs'))).toBe(false);
    const directory = await fetchFrom(FILES);
    expect(server!.requests.at(-1)).toBe('GET /model.safetensors bytes=20000-');
    expect(Uint8Array.from(readFileSync(join(directory, 'model.safetensors')))).toEqual(FILES['model.safetensors']);
  });
});

describe('a broken connection', () => {
  it('is taken up where it broke', async () => {
    const directory = await fetchFrom(FILES, { intercept: breakingOff(8000) });
    const ranges = server!.requests
      .filter(line => line.startsWith('GET /model.safetensors'))
      .map(line => line.split(' ')[2]);
    expect(ranges).toEqual(['bytes=0-0', undefined, 'bytes=8000-', 'bytes=16000-', 'bytes=24000-']);
    expect(Uint8Array.from(readFileSync(join(directory, 'model.safetensors')))).toEqual(FILES['model.safetensors']);
  });

  it('that brings nothing new ends the attempt; half a file is never a model, and the next run continues', async () => {
    let broken = false;
    const intercept: Handler = (request, response) => {
      if (!isContent(request)) return false;
      if (!broken) {
        broken = true;
        return breakingOff(12_000)(request, response);
      }
      response.writeHead(206, { 'content-length': 18_000 }).flushHeaders();
      response.destroy();
      return true;
    };
    await expect(fetchFrom(FILES, { intercept })).rejects.toThrow(
      /^model\.safetensors broke off at 12000 of 30000 bytes \(.+\); run again to continue from there$/,
    );
    expect(existsSync(join(folder(), 'snapshots', COMMIT, 'model.safetensors'))).toBe(false);
    await expect(fetchAgain({ env: { HF_HUB_OFFLINE: '1' } })).rejects.toThrow(/is not whole in .*HF_HUB_OFFLINE/);
    await fetchFrom(FILES);
    expect(server!.requests.at(-1)).toBe('GET /model.safetensors bytes=12000-');
  });

  it('a body that ends early without an error is one too', async () => {
    const intercept: Handler = (request, response) => {
      if (!isContent(request)) return false;
      response.writeHead(206).end();
      return true;
    };
    await expect(fetchFrom(FILES, { intercept })).rejects.toThrow('broke off at 0 of 30000 bytes; run again');
  });

  it('a hub that falls silent is one too', async () => {
    const intercept: Handler = (request, response) => {
      if (!isContent(request)) return false;
      response.writeHead(200).write('x');
      return true;
    };
    await expect(fetchFrom(FILES, { intercept, attempts: 1, timeoutMs: 100 })).rejects.toThrow(
      'nothing was heard for 0.1 s',
    );
    await expect(fetchFrom(FILES, { intercept: () => true, timeoutMs: 100 })).rejects.toThrow(
      /cannot be reached .*0\.1 s/,
    );
  });

  it('a server that knows no ranges sends the file again', async () => {
    await expect(fetchFrom(FILES, { intercept: breakingOff(5000, 1), attempts: 1 })).rejects.toThrow(
      'broke off at 5000',
    );
    const directory = await fetchFrom(FILES, {
      intercept: (request, response) => {
        if (!isContent(request)) return false;
        response.writeHead(200).end(FILES['model.safetensors']);
        return true;
      },
    });
    expect(Uint8Array.from(readFileSync(join(directory, 'model.safetensors')))).toEqual(FILES['model.safetensors']);
  });
});

describe('wrong content', () => {
  const serving =
    (content: Uint8Array): Handler =>
    (request, response) => {
      if (!isContent(request)) return false;
      response.writeHead(200).end(content);
      return true;
    };

  it('is refused', async () => {
    await expect(fetchFrom(FILES, { intercept: serving(weights(7)) })).rejects.toThrow(
      /^model\.safetensors came with other content than the hub lists \(digest [0-9a-f]{64}\)/,
    );
    await expect(fetchFrom(FILES, { intercept: serving(new Uint8Array(40_000)) })).rejects.toThrow(
      'model.safetensors is longer than the 30000 bytes that the hub lists',
    );
    expect(existsSync(join(folder(), 'snapshots', COMMIT, 'model.safetensors'))).toBe(false);
  });

  it('left by an earlier run is fetched again', async () => {
    const directory = await fetchFrom(FILES);
    const blob = join(directory, readlinkSync(join(directory, 'model.safetensors')));
    rmSync(blob);
    for (const size of [20_000, 30_000, 31_000]) {
      writeFileSync(`${blob}.incomplete`, new Uint8Array(size));
      await fetchAgain();
      expect(Uint8Array.from(readFileSync(blob))).toEqual(FILES['model.safetensors']);
      rmSync(blob);
    }
  });

  it('of another size than listed is refused', async () => {
    const intercept: Handler = (request, response) => {
      if (request.url !== '/model.safetensors') return false;
      response.writeHead(206, { etag: '"x"', 'content-range': 'bytes 0-0/29999' }).end('x');
      return true;
    };
    await expect(fetchFrom(FILES, { intercept })).rejects.toThrow('with 30000 bytes and offers 29999');
  });
});

describe('a hub that refuses', () => {
  const answering =
    (status: number, code?: string, headers?: Record<string, string>): Handler =>
    (_, response) => {
      refuse(response, status, code, headers);
      return true;
    };

  it.each<[string, Handler, HubOptions, RegExp]>([
    ['401', answering(401), {}, /does not show org\/small \(401\): .* set HF_TOKEN to a token that may read it/],
    ['403', answering(403), { env: { HF_TOKEN: 'secret' } }, /\(403\).*HF_TOKEN is set: use one that may read it/],
    [
      'gated',
      answering(403, 'GatedRepo'),
      {},
      /is gated \(403\): accept its terms at http:.*\/org\/small, and set HF_TOKEN/,
    ],
    ['404', answering(404, 'RepoNotFound'), {}, /there is no model org\/small at http:.*\(404\); check the name/],
    [
      'an unknown revision',
      () => false,
      { revision: 'v9' },
      /org\/small has no revision v9 at .*; name a branch, a tag or/,
    ],
    ['429', answering(429), {}, /takes no more requests for now \(429\): try again later, or set HF_TOKEN/],
    [
      '429 for long',
      answering(429, '', { 'retry-after': '3600' }),
      {},
      /\(429\); it asks to wait 3600 s: try again later/,
    ],
    [
      '500',
      answering(500),
      {},
      /failed \(500\) at each of 3 attempts; try again later, or set HF_ENDPOINT to a mirror/,
    ],
    ['418', answering(418), {}, /answered 418 to a request for org\/small; check HF_ENDPOINT/],
  ])('with %s', async (_, intercept, options, message) => {
    const fetched = fetchFrom(FILES, { intercept, ...options });
    await expect(fetched).rejects.toThrow(message);
    await expect(fetched).rejects.not.toThrow('secret');
  });

  it('for a while only is asked again', async () => {
    let count = 0;
    const intercept: Handler = (request, response) => {
      if (!request.url!.startsWith('/api/') || ++count % 3 === 0) return false;
      refuse(response, count % 3 === 1 ? 503 : 429, '', { 'retry-after': '0' });
      return true;
    };
    await fetchFrom(FILES, { intercept });
    expect(count).toBe(3 * (1 + 3));
  });

  it('is not asked more often than that', async () => {
    await expect(fetchFrom(FILES, { intercept: answering(503) })).rejects.toThrow('503');
    expect(server!.requests).toHaveLength(3);
    await expect(fetchFrom(FILES, { intercept: answering(404) })).rejects.toThrow('404');
    expect(server!.requests).toHaveLength(1);
  });

  it.each<[string, (response: Parameters<Handler>[1]) => void]>([
    ['a web page', response => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')],
    ['another object', response => response.writeHead(200).end('{"sha":"../../x","id":7}')],
    ['a list', response => response.writeHead(200).end('[]')],
  ])('with %s is no hub', async (_, answer) => {
    const intercept: Handler = (__, response) => {
      answer(response);
      return true;
    };
    await expect(fetchFrom(FILES, { intercept })).rejects.toThrow(/check HF_ENDPOINT$/);
    expect(readdirSync(cache)).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['no list', {}],
    ['no digest', [{ type: 'file', path: 'config.json', size: 2 }]],
    ['a path for a digest', [{ type: 'file', path: 'config.json', size: 2, oid: '../../config' }]],
    ['a negative size', [{ type: 'file', path: 'config.json', size: -2, oid: COMMIT }]],
    ['text', [7, 'config.json']],
  ])('with a listing that has %s is no hub', async (_, listing) => {
    const intercept: Handler = (request, response) => {
      if (!request.url!.includes('/tree/')) return false;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(listing));
      return true;
    };
    await expect(fetchFrom(FILES, { intercept })).rejects.toThrow(/check HF_ENDPOINT|has no config\.json/);
  });

  it('with a listing that has no end is given up', async () => {
    const intercept: Handler = (request, response) => {
      if (!request.url!.includes('/tree/')) return false;
      const link = `<http://${request.headers.host}${request.url}>; rel="next"`;
      const entries = Array.from({ length: 2000 }, (_, i) => ({ type: 'file', path: `f${i}`, size: 0, oid: COMMIT }));
      response.writeHead(200, { 'content-type': 'application/json', link }).end(JSON.stringify(entries));
      return true;
    };
    await expect(fetchFrom(FILES, { intercept })).rejects.toThrow('lists more than 10000 files');
  });
});

describe('a repository', () => {
  const { 'model.safetensors': _, ...pickled } = FILES;
  const { 'config.json': __, ...unconfigured } = FILES;
  const { 'tokenizer.json': ___, ...mute } = FILES;
  const { 'model-00002-of-00002.safetensors': ____, ...torn } = SHARDED;
  const naming = (shard: string) => ({
    ...SHARDED,
    'model.safetensors.index.json': text(JSON.stringify({ weight_map: { a: shard } })),
  });

  it.each<[string, Record<string, Uint8Array>, string]>([
    ['weights in a pickle', pickled, 'is there, only pytorch_model.bin, a pickle, which may run code when it is read'],
    [
      'weights in another format',
      { ...SMALL, 'small-q4.gguf': weights(1) },
      'only small-q4.gguf; convert it to safetensors',
    ],
    ['no weights', SMALL, 'org/small (main) has no model.safetensors'],
    ['no configuration', unconfigured, 'org/small (main) has no config.json'],
    ['no tokenizer.json', mute, 'org/small (main) has no tokenizer.json'],
    [
      'a missing shard',
      torn,
      'has no model-00002-of-00002.safetensors, though its model.safetensors.index.json names it',
    ],
    ['a shard elsewhere', naming('../x.safetensors'), 'names the shard "../x.safetensors" outside of its directory'],
    [
      'a shard in a pickle',
      naming('pytorch_model.bin'),
      'names the shard "pytorch_model.bin" which is no safetensors file',
    ],
  ])('with %s is refused', async (_____, files, message) => {
    await expect(fetchFrom(files)).rejects.toThrow(message);
    expect(readdirSync(cache, { recursive: true }).filter(name => /\.bin|-of-|gguf/.test(String(name)))).toEqual([]);
  });
});

describe('without a network', () => {
  /** Where no server listens any more. */
  let away: { HF_ENDPOINT: string };
  beforeEach(async () => {
    const gone = await hubServer(MODEL, {});
    await gone.close();
    away = { HF_ENDPOINT: gone.endpoint };
  });

  it('says what to do', async () => {
    await expect(fetchFrom(FILES, { env: away })).rejects.toThrow(
      /^http:\/\/127\.0\.0\.1:\d+ cannot be reached for org\/small \(fetch failed: connect ECONNREFUSED .+\); check the network, set HF_ENDPOINT to a mirror, or give the directory of a copy$/,
    );
    await expect(fetchFrom(FILES, { env: { HF_HUB_OFFLINE: '1' } })).rejects.toThrow(
      'HF_HUB_OFFLINE forbids to fetch it',
    );
    expect(server!.requests).toEqual([]);
  });

  it('takes a whole model from the cache, and no half one', async () => {
    const directory = await fetchFrom(SHARDED);
    expect(await fetchAgain({ env: away })).toBe(directory);
    expect(await fetchAgain({ env: { HF_HUB_OFFLINE: '1' } })).toBe(directory);
    await expect(fetchAgain({ env: away, revision: 'v1' })).rejects.toThrow('cannot be reached');
    rmSync(join(directory, 'model-00002-of-00002.safetensors'));
    await expect(fetchAgain({ env: away })).rejects.toThrow('cannot be reached');
  });

  it('takes no answer of the hub for absence', async () => {
    await fetchFrom(FILES);
    const intercept: Handler = (_, response) => {
      refuse(response, 403);
      return true;
    };
    await expect(fetchFrom(FILES, { intercept })).rejects.toThrow('403');
  });
});

describe('settings', () => {
  it.each<[string, HubOptions]>([
    ['the revision is "../x"', { revision: '../x' }],
    ['the revision is "a//b"', { revision: 'a//b' }],
    ['HF_ENDPOINT is "hub.local"', { env: { HF_ENDPOINT: 'hub.local' } }],
    ['HF_TOKEN has characters that no token has; set it to the token alone', { env: { HF_TOKEN: 'a\nb' } }],
  ])('%s is refused', async (message, options) => {
    await expect(fetchFrom(FILES, options)).rejects.toThrow(message);
  });

  it('a folder that cannot be written is named', async () => {
    mkdirSync(folder());
    writeFileSync(join(folder(), 'blobs'), '');
    await expect(fetchFrom(FILES)).rejects.toThrow(/blobs.*a part of the path is a file: choose another path/);
  });
});
