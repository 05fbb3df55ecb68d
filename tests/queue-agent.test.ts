import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { chooseAgent } from '../src/cli/agent.ts';
import { OWN_PACKAGE } from '../src/cli/own-package.ts';
import { resolve } from '../src/config/load.ts';
import { rlOptions } from '../src/config/rl.ts';
import { parseEpisode } from '../src/episode/serialize.ts';
import { validateEpisode } from '../src/episode/validate.ts';
import { provideModules } from '../src/modules/load.ts';
import { testContext } from '../src/testing/executor-context.ts';
import { root, tokenloop } from './support/process.ts';

/** examples/queue-agent, chosen and given its arguments as on the command line. */

beforeAll(() => provideModules(OWN_PACKAGE));

const options = (...more: string[]) =>
  resolve(rlOptions, { cwd: root, argv: ['--config', 'examples/queue-agent/rl.yaml', ...more] }).values;

it('runs with an argument of the agent on the command line, and refuses one that nobody has', async () => {
  const values = options('my_param=5.0');
  expect(values['agent.args']).toEqual({ my_param: 5 });
  const executor = await chooseAgent(values, { cwd: root });
  const prompt = [{ role: 'user', content: '12+7' }];
  const task = { id: 't', prompt, label: '19', metadata: {} };
  const context = testContext({ answers: (_, i) => ['a18', 'a19'][i]! });
  const episode = await executor.run(task, context);
  validateEpisode(episode);
  expect(episode.outcome).toEqual({ kind: 'done' });
  expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 2.5]);
  expect(episode.segments.map(({ source }) => source)).toEqual(['prompt', 'policy', 'environment', 'policy']);
  const shown = context.renderer.decode(context.sampler.requests[1]!.tokens, { special: true });
  expect(shown).toContain('a18<|im_end|>\n<|im_start|>user\ne');
  expect(() => options('rollout.my_param=5.0')).toThrow(/unknown option/);
  expect(() => options('--my_param', '5.0')).toThrow(/unknown option/);
});

it('keeps the arguments of a file beside those of the command line', () => {
  expect(options('--agent.args', '{num_turns: 2}', 'my_param=5.0')['agent.args']).toEqual({
    num_turns: 2,
    my_param: 5,
  });
});

it('refuses an argument that the agent does not have, by name', async () => {
  const { argv, cwd } = { argv: ['--config', 'examples/single-turn/rl.yaml', 'my_param=5.0'], cwd: root };
  expect(() => resolve(rlOptions, { argv, cwd })).toThrow(/my_param: unknown option/);
  // The registry belongs to the process, where the first test has registered the agent.
  const registered = { ...options('my_parm=5.0'), 'train.agent_func_path': undefined };
  await expect(chooseAgent(registered, { cwd: root })).rejects.toThrow(/no argument my_parm; did you mean my_param\?/);
  const lost = { ...registered, 'agent.type': undefined };
  await expect(chooseAgent(lost, { cwd: root })).rejects.toThrow(/env.type is for agent.type/);
});

it('trains through the command, from a file that registers by the package of its name', async () => {
  const directory = join(mkdtempSync(join(tmpdir(), 'tokenloop-queue-')), 'run');
  const small = ['--train.max_steps', '1', '--rollout.batch_size', '8', '--eval.max_samples', '2'];
  const argv = ['rl', '--config', 'examples/queue-agent/rl.yaml', 'my_param=5.0', '--run.dir', directory, ...small];
  const { code, err } = await tokenloop(argv, { cwd: root });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const episodes = readFileSync(join(directory, 'episodes.jsonl'), 'utf8').trimEnd().split('\n');
  const read = episodes.map(line => parseEpisode(line, 'episodes.jsonl'));
  expect(new Set(read.map(({ outcome }) => outcome.kind))).toEqual(new Set(['done']));
  // A right answer earns 5, halved for each turn that it came late.
  const earned = new Set(read.flatMap(({ steps }) => steps.map(({ reward }) => reward)));
  expect(earned.has(5)).toBe(true);
  expect([...earned].filter(reward => ![0, 5, 2.5, 1.25].includes(reward))).toEqual([]);
  const metrics = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').trimEnd().split('\n');
  const last = JSON.parse(metrics.at(-1)!) as Record<string, number>;
  expect(last.step).toBe(1);
  expect(last['train/mismatch_max']).toBeLessThan(1e-4);
});
