import { expect, it } from 'vitest';
import { chooseAgent } from '../src/cli/agent.ts';
import { resolve } from '../src/config/load.ts';
import { rlOptions } from '../src/config/rl.ts';
import { validateEpisode } from '../src/episode/validate.ts';
import { testContext } from '../src/testing/executor-context.ts';
import { root } from './support/process.ts';

/** examples/queue-agent, chosen and given its arguments as on the command line. */

const options = (...more: string[]) =>
  resolve(rlOptions, { cwd: root, argv: ['--config', 'examples/queue-agent/rl.yaml', ...more] }).values;

it('runs with an argument of the agent on the command line, and refuses one that nobody has', async () => {
  const values = options('my_param=5.0');
  expect(values['agent.args']).toEqual({ my_param: 5 });
  const executor = await chooseAgent(values, root);
  const prompt = [{ role: 'user', content: '12+7' }];
  const task = { id: 't', prompt, label: '19', metadata: {} };
  const context = testContext({ answers: (_, i) => ['a18', 'a19'][i]! });
  const episode = await executor.run(task, context);
  validateEpisode(episode);
  expect(episode.outcome).toEqual({ kind: 'done' });
  expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 2.5]);
  expect(episode.segments.map(({ source }) => source)).toEqual(['prompt', 'policy', 'environment', 'policy']);
  const shown = context.renderer.decode(context.sampler.requests[1]!.tokens, { special: true });
  expect(shown).toContain('a18<|im_end|>\n<|im_start|>user\nno');
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
  const { argv, cwd } = { argv: ['--config', 'examples/guess-number/rl.yaml', 'my_param=5.0'], cwd: root };
  expect(() => resolve(rlOptions, { argv, cwd })).toThrow(/my_param: unknown option/);
  // The registry belongs to the process, where the first test has registered the agent.
  const registered = { ...options('my_parm=5.0'), 'train.agent_func_path': undefined };
  await expect(chooseAgent(registered, root)).rejects.toThrow(/no argument my_parm; did you mean my_param\?/);
  const lost = { ...registered, 'agent.type': undefined };
  await expect(chooseAgent(lost, root)).rejects.toThrow(/env.type is for agent.type/);
});
