import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { dispatched } from '../support/in-process.ts';
import { root, start, startNode, tokenloop } from '../support/process.ts';
import { workplace } from '../support/workplace.ts';

/** `tokenloop init env` writes an environment, and every command that takes one takes it as it is. */

const cwd = workplace();
const read = (...path: string[]) => readFileSync(join(...path), 'utf8');
const ENVIRONMENT = 'largest/environment.ts';

beforeAll(async () => {
  const { code, out, err } = await dispatched(['init', 'env', 'largest'], cwd);
  expect({ code, err }).toEqual({ code: 0, err: [] });
  expect(out.join('')).toContain('wrote largest/environment.ts\n');
  expect(out.join('')).toContain('npx tsx --test largest/environment.test.ts\n');
});

describe('init env', () => {
  it('writes the files of examples/new-environment under the name', () => {
    const files = readdirSync(join(cwd, 'largest'));
    expect(files).toEqual(['environment.test.ts', 'environment.ts', 'rl.yaml', 'tasks.jsonl']);
    for (const file of files) {
      const example = read(root, 'examples/new-environment', file).replaceAll('new-environment', 'largest');
      expect(read(cwd, 'largest', file)).toBe(example);
    }
  });

  it('never overwrites a file, and then writes none', async () => {
    mkdirSync(join(cwd, 'mine'));
    writeFileSync(join(cwd, 'mine/rl.yaml'), 'mine');
    for (const [dir, there] of [
      ['mine', 'mine/rl.yaml is'],
      ['largest', 'largest/environment.ts, largest/environment.test.ts, largest/rl.yaml, largest/tasks.jsonl are'],
    ]) {
      const { code, err } = await dispatched(['init', 'env', 'other', '--dir', dir!], cwd);
      expect({ code, err: err.join('') }).toEqual({
        code: 2,
        err: `tokenloop: ${there} there already; choose another --dir\n`,
      });
    }
    expect(readdirSync(join(cwd, 'mine'))).toEqual(['rl.yaml']);
    expect(read(cwd, 'mine/rl.yaml')).toBe('mine');
  });

  it.each([
    [['init', 'env', 'My_env'], 'init.name is "My_env"; a name of small letters, digits and hyphens, as in my-env'],
    [['init', 'agent', 'x'], 'init.kind is "agent"; expected one of env'],
    [['init', 'env'], 'init.name is missing'],
  ])('%j is refused', async (argv, message) => {
    const { code, err } = await dispatched(argv, cwd);
    expect(code).toBe(2);
    expect(err.join('')).toContain(message);
  });

  it('writes the test for vitest where that is installed', async () => {
    mkdirSync(join(cwd, 'project/node_modules/vitest'), { recursive: true });
    writeFileSync(join(cwd, 'project/node_modules/vitest/package.json'), '{}');
    const { out } = await dispatched(['init', 'env', 'x', '--dir', 'project/envs/x'], cwd);
    expect(out.join('')).toContain('npx vitest run project/envs/x\n');
    const test = read(cwd, 'project/envs/x/environment.test.ts');
    expect(test).toContain("import { test } from 'vitest';");
    expect(read(cwd, 'project/envs/x/rl.yaml')).toContain('  env: project/envs/x/environment.ts\n');
  });
});

describe('what it wrote', () => {
  it('is played and evaluated', async () => {
    const [played, evaluated] = await Promise.all([
      tokenloop(['play', ENVIRONMENT, 'count=4', 'tries=3'], { cwd, input: 'none\n99\n' }),
      tokenloop(['eval', '--env', ENVIRONMENT, '--json', '--eval.episodes', '50'], { cwd }),
    ]);
    expect(played).toMatchObject({ code: 0, err: '' });
    expect(played.out).toMatch(
      /seed 42: Say the largest .*\n\n\d+ \d+ \d+ \d+\n\n> none\n\[reward 0, invalid 1\]\na number\n/,
    );
    expect(played.out).toMatch(/no more answers: score 0, reward 0, turns 2\n$/);
    expect(evaluated.code).toBe(0);
    const rows = evaluated.out
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
    expect(rows).toMatchObject([{ player: 'random' }, { player: 'oracle', solved: 1, score: 1, turns: 1, illegal: 0 }]);
    expect(rows[0].solved).toBeLessThan(0.6);
  });

  it.runIf(process.platform !== 'win32')('is left with Ctrl-C', async () => {
    const { child, ended, said } = start(['play', ENVIRONMENT], { cwd, input: null });
    await said('stdout', '\n> ');
    child.kill('SIGINT');
    const { code, out } = await ended;
    expect(code).toBe(130);
    expect(out).toMatch(/\ninterrupted: score 0, reward 0, turns 0\n$/);
  });

  it('passes its own test, with the test runner of Node', async () => {
    const env = { TSX_TSCONFIG_PATH: join(root, 'tsconfig.json') };
    const { code, out } = await startNode(['--test', '--test-reporter=tap', 'largest/environment.test.ts'], {
      cwd,
      env,
    }).ended;
    expect(out).toContain('# fail 0');
    expect(code).toBe(0);
    // A test that could not fail would be no test: with another rule it does.
    const changed = read(cwd, ENVIRONMENT).replace('0.5 ** turn', '1');
    mkdirSync(join(cwd, 'changed'));
    writeFileSync(join(cwd, 'changed/environment.ts'), changed);
    writeFileSync(join(cwd, 'changed/environment.test.ts'), read(cwd, 'largest/environment.test.ts'));
    const broken = await startNode(['--test', '--test-reporter=tap', 'changed/environment.test.ts'], { cwd, env })
      .ended;
    expect(broken.out).toContain('not ok');
    expect(broken.code).toBe(1);
  });

  it('is trained on with its recipe', { timeout: 120_000 }, async () => {
    symlinkSync(join(root, 'examples'), join(cwd, 'examples'));
    const model = ['--actor.model_name_or_path', 'examples/text-games/model'];
    const small = ['--train.max_steps', '2', '--rollout.batch_size', '2', '--rollout.n_samples_per_prompt', '2'];
    const { code, out } = await tokenloop(
      ['rl', '--config', 'largest/rl.yaml', ...model, ...small, '--engine.threads', '1', '--run.dir', 'run'],
      { cwd },
    );
    expect(code).toBe(0);
    expect(out).toContain('step 2/2');
    rmSync(join(cwd, 'examples'));
  });
});
