import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { start, tokenloop } from './support/process.ts';
import { workplace, writeTinyModel } from './support/workplace.ts';

/** The executable as a process: what is printed where, and the exit codes. */

const cwd = workplace();

/** A module that makes the runtime of the embedded engine impossible to load. */
function withoutRuntime(): string {
  const hooks = join(cwd, 'hooks.mjs');
  writeFileSync(
    hooks,
    `export async function resolve(name, context, next) {
      if (name === 'onnxruntime-node') throw new Error('not built for this machine');
      return next(name, context);
    }`,
  );
  const entry = join(cwd, 'without-runtime.mjs');
  writeFileSync(
    entry,
    `import { register } from 'node:module'; register(${JSON.stringify(pathToFileURL(hooks).href)});`,
  );
  return pathToFileURL(entry).href;
}

const run = (...argv: string[]) => tokenloop(argv, { cwd });

describe('tokenloop', () => {
  it('shows help and version', async () => {
    expect(await run('--help')).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('tokenloop <command>'),
    });
    expect(await run('--version')).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });

  it('needs no runtime for help, and doctor says how to get one', async () => {
    const imports = [withoutRuntime()];
    const without = (...argv: string[]) => tokenloop(argv, { cwd, imports });
    const help = async (command: string) => {
      const { code, out, err } = await without(command, '--help');
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toContain(`tokenloop ${command}: `);
    };
    await Promise.all(['rl', 'sft', 'eval', 'generate', 'doctor'].map(help));
    const { code, out } = await without('doctor');
    expect(code).toBe(1);
    expect(out).toMatch(/onnxruntime-node +failed +not built for this machine/);
    expect(out).toContain('ONNXRUNTIME_NODE_INSTALL=skip npm install');
  });

  it('exits 2 on bad input, with one line for each fault and no stack', async () => {
    expect(await run('genrate')).toMatchObject({ code: 2, err: expect.stringContaining('did you mean generate?') });
    writeFileSync(join(cwd, 'bad.yaml'), 'train:\n  seed: [1, 2\n');
    expect(await run('generate', '--config', 'bad.yaml')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^tokenloop: bad\.yaml:\d+:\d+: [^\n]+\n$/),
    });
    expect(await run('generate', '--pretrain', 'x', '--rollout.temprature', '1', 'train.seed=x')).toMatchObject({
      code: 2,
      err:
        'tokenloop: --rollout.temprature: unknown option; did you mean rollout.temperature?\n' +
        'tokenloop: train.seed is "x"; expected an integer >= 0\n',
    });
    expect(await run('generate', '--model.model_name_or_path', 'x')).toMatchObject({
      code: 2,
      err: 'tokenloop: the prompt is empty; give --prompt or pipe text in\n',
    });
  });

  it('generates from a checkpoint, the same with the same seed', async () => {
    await writeTinyModel(join(cwd, 'model'));
    const generate = (...argv: string[]) =>
      run('generate', 'model.model_name_or_path=model', '--prompt', '1+2', ...argv);
    const [first, again, other] = await Promise.all([generate(), generate(), generate('--train.seed', '7')]);
    expect(first).toMatchObject({ code: 0, err: expect.stringMatching(/^\d+ tokens, ended by (stop|length)\n$/) });
    expect(first.out).toMatch(/.\n$/);
    expect(again).toEqual(first);
    expect(other.out).not.toBe(first.out);
    expect(await run('generate', 'model.model_name_or_path=model', '--prompt', 'Hello')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^tokenloop: the vocabulary cannot express "H"/),
    });
    expect(await run('generate', 'model.model_name_or_path=nowhere', '--prompt', '1')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^tokenloop: .*nowhere.*\n$/),
    });
  });

  it('exits 130 when interrupted', async () => {
    const { child, ended, said } = start(['generate', '--pretrain', 'x'], { cwd, input: null });
    // The notice about the older name comes when signals are already listened to.
    await said('stderr', 'older name');
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130 });
  });
});
