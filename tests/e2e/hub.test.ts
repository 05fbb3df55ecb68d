import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { onnxPolicy } from '../../src/engines/onnx/index.ts';
import { COMMIT, type HubServer, hubServer } from '../support/hub-server.ts';
import { tokenloop } from '../support/process.ts';
import { workplace, writeTinyModel } from '../support/workplace.ts';

const cwd = workplace();
let hub: HubServer;
let env: Record<string, string>;
beforeAll(async () => {
  await writeTinyModel(join(cwd, 'model'));
  const files = readdirSync(join(cwd, 'model')).map(name => [name, readFileSync(join(cwd, 'model', name))] as const);
  hub = await hubServer('org/tiny', Object.fromEntries(files));
  env = { HF_ENDPOINT: hub.endpoint, HF_HUB_CACHE: join(cwd, 'cache') };
});
afterAll(() => hub.close());

const generate = (model: string, ...argv: string[]) =>
  tokenloop(
    ['generate', '--model.model_name_or_path', model, '--prompt', '1+2', '--rollout.max_new_tokens', '8', ...argv],
    {
      cwd,
      env,
    },
  );

it('a model of the hub generates what its directory does, and the answer alone is on standard output', async () => {
  const [local, fetched] = [await generate('model'), await generate('org/tiny', '--model.model_revision', 'v1')];
  expect(local.code).toBe(0);
  expect(fetched).toMatchObject({ code: 0, out: local.out });
  expect(fetched.err).toContain(`fetching org/tiny at commit ${COMMIT}\n`);
  expect(fetched.err).toMatch(/fetching model\.safetensors: \d+ kB left\n/);
  const again = await generate('org/tiny', '--model.model_revision', COMMIT);
  expect(again).toEqual(local);
});

it('what the hub does not have is said in a line', async () => {
  expect(await generate('org/tyni')).toMatchObject({
    code: 1,
    out: '',
    err: `tokenloop: there is no model org/tyni at ${hub.endpoint} (404); check the name (${join(cwd, 'org/tyni')} is no directory either)\n`,
  });
});

it('the library takes names of the hub as well, and refuses what cannot fit into memory', async () => {
  const options = { revision: COMMIT, cacheDir: join(cwd, 'other'), env: { HF_ENDPOINT: hub.endpoint } };
  const policy = await onnxPolicy({ model: 'org/tiny', threads: 1, hub: options });
  expect(policy.sampler.contextLength).toBe(64);
  await policy.close();
  await expect(onnxPolicy({ model: join(cwd, 'model'), maxTokens: 1e11 })).rejects.toThrow(
    /model: training the model needs about \d+ GB \(weights 0\.0 GB, .*activations \d+ GB, logits \d+\.\d GB\), and this machine has/,
  );
});
