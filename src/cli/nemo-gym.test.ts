import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { type JsonServer, jsonServer } from '../../tests/support/json-server.ts';
import { resourcesServerForTests } from '../../tests/support/nemo-gym-server.ts';
import { resolve } from '../config/load.ts';
import { rlOptions } from '../config/rl.ts';
import { testContext } from '../testing/executor-context.ts';
import { chooseAgent } from './agent.ts';
import { loadTrainingTasks } from './datasets.ts';

/** A server of NeMo Gym by the command line: its address or its name, its dataset rows as tasks. */

const cwd = mkdtempSync(join(tmpdir(), 'nemo-gym-'));
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});
afterAll(() => rmSync(cwd, { recursive: true }));

const base = ['--actor.model_name_or_path', 'model', '--data.prompt_dataset', 'rows.jsonl'];
const values = (...argv: string[]) => resolve(rlOptions, { cwd, argv: [...base, ...argv] }).values;
const choose = (...argv: string[]) => chooseAgent(values(...argv), { cwd });
const tasksOf = (given: ReturnType<typeof values>) =>
  loadTrainingTasks({ datasets: 'rows.jsonl' }, given, { cwd, stderr: process.stderr });
const rows = (...given: readonly object[]) =>
  writeFileSync(join(cwd, 'rows.jsonl'), given.map(row => `${JSON.stringify(row)}\n`).join(''));

it('plays the rows of a dataset', async () => {
  const server = await resourcesServerForTests();
  open.push(server);
  const message = { role: 'user', content: [{ type: 'input_text', text: 'Say blue.' }] };
  const agent = { type: 'responses_api_agents', name: 'follow-up' };
  rows(
    {
      responses_create_params: { input: [message], instructions: 'Be short.' },
      verifier_metadata: { expected_answer: 'blue' },
      agent_ref: agent,
    },
    { responses_create_params: { input: 'Say red.' }, verifier_metadata: { expected_answer: 'red' }, id: 'second' },
  );
  const given = values('--env.nemo_gym.url', server.url, '--env.nemo_gym.mode', 'gymnasium');
  const tasks = [...(await tasksOf(given))];
  expect(tasks).toMatchObject([
    {
      id: 'rows:1',
      source: 'follow-up',
      prompt: [
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'Say blue.' },
      ],
    },
    { id: 'second', source: 'rows', prompt: [{ role: 'user', content: 'Say red.' }], metadata: { id: 'second' } },
  ]);
  const executor = await chooseAgent(given, { cwd });
  const episodes = await Promise.all(tasks.map(task => executor.run(task, testContext({ answers: () => 'Blue.' }))));
  expect(episodes.map(({ outcome, score }) => [outcome.kind, score])).toEqual([
    ['done', 1],
    ['done', 0],
  ]);
});

it('refuses a row that is none, with its place', async () => {
  rows({ responses_create_params: { input: 'x' } }, { prompt: 'x', label: 'y' });
  await expect(tasksOf(values('--env.nemo_gym.url', 'http://127.0.0.1:1'))).rejects.toThrow(
    /rows.jsonl:2: .*no row of a NeMo Gym dataset: responses_create_params: expected object, got nothing/,
  );
});

it('finds a server by its name', async () => {
  const head: JsonServer = await jsonServer(() => [
    { name: 'other', url: 'http://10.0.0.1:1' },
    { name: 'mine', url: 'http://127.0.0.1:2/' },
  ]);
  open.push(head);
  const named = (name: string) => choose('--env.nemo_gym.instance', name, '--env.nemo_gym.head_url', head.url);
  expect((await named('mine')).name).toBe('nemo-gym');
  expect(head.requests[0]).toMatchObject({ method: 'GET', path: '/server_instances' });
  await expect(named('my')).rejects.toThrow(/has no server "my"; there are: other, mine/);
});

it.each([
  [['--env.nemo_gym.url', 'localhost:80'], /"localhost:80" is no address of a NeMo Gym server/],
  [['--env.nemo_gym.url', 'http://x', '--agent.env', 'calculator'], /brings tasks and rewards: leave out agent.env/],
  [['--env.nemo_gym.url', 'http://x', '--env.nemo_gym.mode', 'agent'], /needs env.nemo_gym.model_port/],
  [['--env.nemo_gym.url', 'http://x', '--env.nemo_gym.model_port', '80'], /model_port is for env.nemo_gym.mode agent/],
  [['--env.nemo_gym.url', 'http://x', '--env.nemo_gym.instance', 'y'], /leave out env.nemo_gym.instance/],
  [['--env.nemo_gym.url', 'http://x', '--agent.history', 'without-reasoning'], /agent.history is for chains of turns/],
  [['--agent.env', 'calculator', '--env.nemo_gym.mode', 'agent'], /env.nemo_gym.mode is for a server/],
])('refuses %j', async (argv, message) => {
  await expect(choose(...argv)).rejects.toThrow(message);
});

it('serves the policy to an agent server on the port that is given', async () => {
  const agent = await choose(
    '--env.nemo_gym.url',
    'http://x',
    '--env.nemo_gym.mode',
    'agent',
    '--env.nemo_gym.model_port',
    '9',
  );
  expect(agent.name).toBe('nemo-gym-agent');
});
