import { expect, it } from 'vitest';
import { multiTurn } from '../agents/multi-turn.ts';
import { resolve } from '../config/load.ts';
import { makeEnvironment } from '../envs/registry.ts';
import { testContext } from '../testing/executor-context.ts';
import { command, serveEnv } from './serve-env.ts';

const cwd = process.cwd();
const task = { id: 't', prompt: '', label: '', metadata: {} };

function start(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { values } = resolve(command.options, { argv: [...argv], cwd });
  const interrupt = new AbortController();
  let told: (text: string) => void = () => undefined;
  const printed = new Promise<string>(done => {
    told = done;
  });
  const stream = {
    write(text: string) {
      told(text);
      return true;
    },
  };
  const context = { values, cwd, env, stdout: stream, stderr: stream, interrupt: { signal: interrupt.signal } };
  const serving = serveEnv(context as unknown as Parameters<typeof serveEnv>[0]);
  return { printed, serving, interrupt };
}

async function won(url: string): Promise<number> {
  const context = testContext({ answers: () => '4', limits: { callTimeoutMs: 20_000 } });
  const { outcome, metrics } = await multiTurn(makeEnvironment(url)).run(task, context);
  expect(outcome).toEqual({ kind: 'done' });
  return metrics.correct!;
}

it('serves an environment under the URL that it prints, until it is interrupted', async () => {
  const { printed, serving, interrupt } = start(['guess-number', '--agent.env_parameters', '{low: 4, high: 4}']);
  const [, url] = /^url (http:\/\/key:tl-\S+@127\.0\.0\.1:\d+\/)\n$/.exec(await printed)!;
  expect(await won(url!)).toBe(1);
  interrupt.abort();
  await serving;
  await expect((async () => makeEnvironment(url!)())()).rejects.toThrow(/cannot be reached/);
});

it('takes the key from the environment and does not print it', async () => {
  const { printed, serving, interrupt } = start(['guess-number', '--serve.key_env', 'MY_KEY'], {
    MY_KEY: 'open sesame',
  });
  const text = await printed;
  expect(text).not.toContain('sesame');
  const { port } = new URL(text.slice('url '.length));
  expect([0, 1]).toContain(await won(`http://key:open%20sesame@127.0.0.1:${port}`));
  interrupt.abort();
  await serving;
});

it.each([
  [[], /agent.env is missing/],
  [['guess-numbers'], /unknown environment "guess-numbers"; known, nearest first: guess-number/],
  [['guess-number', '--serve.key_env', 'NONE'], /serve.key_env is NONE, and this environment variable is not set/],
])('refuses %o', async (argv, message) => {
  await expect(start(argv).serving).rejects.toThrow(message);
});
