import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { abcPolicy } from '../../tests/support/abc-policy.ts';
import { mlflowServer } from '../../tests/support/mlflow-server.ts';
import { wandbServer } from '../../tests/support/wandb-server.ts';
import { resolve } from '../config/load.ts';
import { rlOptions } from '../config/rl.ts';
import { reinforce } from './rl.ts';
import type { Env } from './terminal.ts';

const CANARY = 'canary-0123456789012345678901234567890123';
let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'cli-trackers-'));
  writeFileSync(join(cwd, 'tasks.jsonl'), ['a', 'b', 'c', 'd'].map(input => JSON.stringify({ input })).join('\n'));
  writeFileSync(join(cwd, 'reward.mjs'), 'export default batch => batch.map(({ text }) => text.length);');
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

async function run(argv: readonly string[], env: Env) {
  const out: string[] = [];
  const err: string[] = [];
  const RL = ['--actor.model_name_or_path', 'abc', '--data.prompt_dataset', 'tasks.jsonl', '--run.dir', 'run'];
  const more = ['--reward.remote_url', 'reward.mjs', '--rollout.batch_size', '2', '--rollout.max_new_tokens', '2'];
  await reinforce(
    {
      ...resolve(rlOptions, { argv: [...RL, ...more, '--train.max_steps', '2', ...argv], cwd }),
      cwd,
      env,
      stdin: process.stdin,
      stdout: { write: text => out.push(text) },
      stderr: { write: text => err.push(text) },
      interrupt: { signal: new AbortController().signal, dispose: () => undefined },
    },
    async () => abcPolicy().engine,
  );
  return { out: out.join(''), err: err.join('') };
}

/** Everything below a directory, as text. */
function everything(directory: string): string {
  const names = readdirSync(directory, { recursive: true }) as string[];
  const files = names.map(name => join(directory, name)).filter(path => statSync(path).isFile());
  return files.map(path => readFileSync(path, 'latin1')).join('\n');
}

describe('rl with trackers', () => {
  it('logs to all of them, and no key reaches a file or the terminal, though a server repeats it', async () => {
    const wandb = await wandbServer(CANARY);
    const mlflow = await mlflowServer(`Bearer ${CANARY}`);
    const env = { WANDB_API_KEY: CANARY, WANDB_BASE_URL: wandb.url, MLFLOW_TRACKING_TOKEN: CANARY };
    const flags = ['--logger.wandb.mode', 'online', '--logger.mlflow.tracking_uri', mlflow.url];
    try {
      const first = await run([...flags, '--logger.tensorboard_dir', 'events'], env);
      expect([...wandb.runs.values()].map(({ history, exitCode }) => [history.length, exitCode])).toEqual([[2, 0]]);
      expect([...mlflow.runs.values()].map(({ status, name }) => [status, name])).toEqual([['FINISHED', 'run']]);
      expect(readdirSync(join(cwd, 'events/run'))).toHaveLength(1);
      expect(first.out).toMatch(/wandb: http.*\/me\/tokenloop\/runs\/\w+\n/);
      rmSync(join(cwd, 'run'), { recursive: true });
      wandb.fail(401);
      mlflow.fail(403);
      const refused = await run(flags, env);
      expect(refused.out).toMatch(/tracker wandb: .*401.*\*\*\*.*; the run goes on/);
      expect(refused.out).toMatch(/tracker mlflow: .*403.*\*\*\*.*; the run goes on/);
      const shown = [first, refused].map(({ out, err }) => out + err).join('') + everything(cwd);
      const forms = [CANARY, Buffer.from(CANARY).toString('base64'), Buffer.from(`api:${CANARY}`).toString('base64')];
      for (const form of forms) expect(shown).not.toContain(form);
    } finally {
      await wandb.close();
      await mlflow.close();
    }
  });

  it('prints one JSON object a step, and nothing else, with --json', async () => {
    const { out, err } = await run(['--json'], {});
    const steps = out
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
    expect(steps.map(({ step }) => step)).toEqual([1, 2]);
    expect(steps[1]).toHaveProperty('rollout/reward_mean');
    expect(err).toMatch(/result: reward/);
  });

  it('prints the result only with --quiet', async () => {
    const { out, err } = await run(['--quiet'], {});
    expect(out).toMatch(/^result: reward .*\n$/);
    expect(err).toBe('');
  });

  it.each([
    [['--logger.wandb.mode', 'online'], /WANDB_API_KEY/],
    [['--logger.mlflow.tracking_uri', `http://me:${CANARY}@host`], /MLFLOW_TRACKING_PASSWORD/],
    [['--logger.wandb.key', CANARY], /set WANDB_API_KEY in the environment and give --logger\.wandb\.mode online/],
    [['--use_wandb', CANARY], /set WANDB_API_KEY/],
  ])('refuses %s before anything is done', async (argv, expected) => {
    const error: Error = await run(argv, {}).then(
      () => expect.unreachable(),
      thrown => thrown,
    );
    expect(error.message).toMatch(expected);
    expect(error.message).not.toContain('canary');
    expect(readdirSync(cwd)).toEqual(['reward.mjs', 'tasks.jsonl']);
  });
});
