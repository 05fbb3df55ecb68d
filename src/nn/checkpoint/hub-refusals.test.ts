import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  cache,
  FILES,
  fetchAgain,
  fetchFrom,
  folder,
  MODEL,
  SHARDED,
  SMALL,
  server,
  text,
  weights,
} from '../../../tests/support/hub-models.ts';
import { COMMIT, type Handler, hubServer, refuse } from '../../../tests/support/hub-server.ts';
import type { HubOptions } from './hub.ts';

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
