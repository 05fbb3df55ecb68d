import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

/** The executable as a process: what is printed where, and the exit codes. */

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const main = join(root, 'src/cli/main.ts');
const tsx = pathToFileURL(join(root, 'node_modules/tsx/dist/loader.mjs')).href;
const cwd = mkdtempSync(join(tmpdir(), 'tokenloop-cli-'));
afterAll(() => rmSync(cwd, { recursive: true }));

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

function start(argv: readonly string[], { imports = [] as readonly string[] } = {}): ChildProcess {
  const loaders = [tsx, ...imports].flatMap(url => ['--import', url]);
  return spawn(process.execPath, [...loaders, main, ...argv], { cwd, stdio: 'pipe' });
}

async function ended(child: ChildProcess): Promise<{ code: number | null; out: string; err: string }> {
  let out = '';
  let err = '';
  child.stdout!.on('data', data => {
    out += data;
  });
  child.stderr!.on('data', data => {
    err += data;
  });
  const code = await new Promise<number | null>(resolve => child.on('close', resolve));
  return { code, out, err };
}

function run(...argv: string[]) {
  const child = start(argv);
  child.stdin!.end();
  return ended(child);
}

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
    const without = (...argv: string[]) => ended(start(argv, { imports }));
    for (const command of ['rl', 'sft', 'eval', 'generate', 'doctor']) {
      const { code, out, err } = await without(command, '--help');
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toContain(`tokenloop ${command}: `);
    }
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
    expect(await run('generate', '--model', 'x', '--rollout.temprature', '1', 'train.seed=x')).toMatchObject({
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

  it('exits 130 when interrupted', async () => {
    const child = start(['generate', '--model', 'x']);
    const end = ended(child);
    // The notice about the older name comes when signals are already listened to.
    await new Promise(resolve => child.stderr!.once('data', resolve));
    child.kill('SIGINT');
    expect(await end).toMatchObject({ code: 130 });
  });
});
