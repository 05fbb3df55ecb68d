import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openCheckpoint } from '../../src/nn/checkpoint/directory.ts';
import { root, startNode } from '../support/process.ts';
import { workplace } from '../support/workplace.ts';

/** The program of the README and of docs/public-api.md, with two steps in place of all. */

it('trains through the public API', { timeout: 120_000 }, async () => {
  const cwd = join(workplace(), 'clone');
  mkdirSync(cwd);
  symlinkSync(join(root, 'examples'), join(cwd, 'examples'));
  const program = join(root, 'examples/calculator-agent/program.ts');
  const env = { TSX_TSCONFIG_PATH: join(root, 'tsconfig.json') };
  const { code, out, err } = await startNode([program, '2'], { cwd, env }).ended;
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(/^1 0\.\d+\n2 0\.\d+\n$/);
  const [before, after] = ['examples/calculator-agent/model', 'runs/program/model'].map(model =>
    openCheckpoint(join(cwd, model)),
  );
  expect(after!.config).toEqual(before!.config);
  expect(after!.weights).not.toEqual(before!.weights);
});
