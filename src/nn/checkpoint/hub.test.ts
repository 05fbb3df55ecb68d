import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import {
  breakingOff,
  FILES,
  fetchAgain,
  fetchFrom,
  folder,
  isContent,
  SHARDED,
  server,
  weights,
} from '../../../tests/support/hub-models.ts';
import { COMMIT, gitId, type Handler } from '../../../tests/support/hub-server.ts';
import type { HubProgress } from './hub.ts';

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
