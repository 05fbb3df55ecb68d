import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { fetchModel, type HubOptions } from '../../src/nn/checkpoint/hub.ts';
import { type Handler, type HubServer, hubServer } from './hub-server.ts';

export const MODEL = 'org/small';
export const text = (content: string) => new TextEncoder().encode(content);
/** 30 kB that no part of it repeats. */
export const weights = (seed: number) => Uint8Array.from({ length: 30_000 }, (_, i) => (i * i * seed + (i >> 8)) & 255);
export const INDEX = JSON.stringify({
  weight_map: { a: 'model-00001-of-00002.safetensors', b: 'model-00002-of-00002.safetensors' },
});
export const SMALL = {
  'config.json': text('{}'),
  'tokenizer.json': text('{"model":{}}'),
  'chat_template.jinja': text('{{x}}'),
};
export const FILES = {
  ...SMALL,
  'README.md': text('# small'),
  'pytorch_model.bin': weights(3),
  'model.safetensors': weights(1),
};
export const SHARDED = {
  ...SMALL,
  'model.safetensors.index.json': text(INDEX),
  'model-00001-of-00002.safetensors': weights(1),
  'model-00002-of-00002.safetensors': weights(2),
};

/** Of the test that runs. */
export let cache: string;
export let server: HubServer | undefined;
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'tokenloop-hub-'));
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(cache, { recursive: true });
});

/** Fetches from a hub of its own, which holds `files`. */
export async function fetchFrom(
  files: Readonly<Record<string, Uint8Array>>,
  { intercept, env, ...options }: HubOptions & { readonly intercept?: Handler } = {},
): Promise<string> {
  await server?.close();
  server = await hubServer(MODEL, files, intercept);
  return fetchAgain({ env: { HF_ENDPOINT: server.endpoint, ...env }, ...options });
}

export const fetchAgain = (options: HubOptions = {}) =>
  fetchModel(MODEL, {
    cacheDir: cache,
    env: { HF_ENDPOINT: server!.endpoint },
    attempts: 3,
    delayMs: 1,
    timeoutMs: 5000,
    ...options,
  });

export const folder = () => join(cache, 'models--org--small');
export const isContent = ({ url, headers }: IncomingMessage) =>
  url === '/model.safetensors' && headers.range !== 'bytes=0-0';

/** Sends the first `bytes` of the weights as often as `times`, and breaks off. */
export function breakingOff(bytes: number, times = Number.POSITIVE_INFINITY): Handler {
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
