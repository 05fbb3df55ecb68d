import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { abcPolicy } from '../../tests/support/abc-policy.ts';
import { jsonServer } from '../../tests/support/json-server.ts';
import { resolve } from '../config/load.ts';
import { rlOptions } from '../config/rl.ts';
import { modelReward } from '../rewards/model/reward.ts';
import { serveRewards } from '../rewards/serve/server.ts';
import type { CommandContext } from './command.ts';
import { reinforce } from './rl.ts';

/** Where a run's rewards come from, from the options to what is trained on. */

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'cli-rewards-'));
  const rows = Array.from({ length: 4 }, (_, i) => JSON.stringify({ input: `say ${i}:`, label: 'a' }));
  writeFileSync(join(cwd, 'tasks.jsonl'), rows.join('\n'));
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

const RL = [
  ...['--actor.model_name_or_path', 'abc', '--data.prompt_dataset', 'tasks.jsonl', '--data.label_key', 'label'],
  ...['--rollout.batch_size', '4', '--rollout.max_new_tokens', '4', '--train.max_steps', '1'],
];
let runs = 0;

/** A run of one step. @param env environment variables */
function prepared(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const run = `run-${runs++}`;
  const stream = { write: () => true };
  const context: CommandContext<typeof rlOptions> = {
    ...resolve(rlOptions, { argv: [...RL, '--run.dir', run, ...argv], cwd }),
    cwd,
    env,
    stdin: process.stdin,
    stdout: stream,
    stderr: stream,
    interrupt: { signal: new AbortController().signal, dispose: () => undefined },
  };
  const records = () =>
    readFileSync(join(cwd, run, 'metrics.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, number>);
  return { context, records };
}
const openPolicy = async () => abcPolicy().engine;
const lengths = async (texts: readonly string[]) => texts.map(text => text.length);

describe('reward.remote_url of servers', () => {
  it('shares the answers among them, with the key of an environment variable', async () => {
    const served = [0, 0];
    const urls: string[] = [];
    for (const i of served.keys()) {
      const scorer = (texts: readonly string[]) => {
        served[i]! += texts.length;
        return lengths(texts);
      };
      const server = await serveRewards({ scorer, key: 'secret' });
      open.push(server);
      urls.push(server.url);
    }
    const argv = ['--reward.remote_url', urls.join(','), '--reward.remote.key_env', 'RM_KEY'];
    const more = ['--reward.remote.max_batch', '1'];
    const { context, records } = prepared([...argv, ...more], { RM_KEY: 'secret' });
    await reinforce(context, openPolicy);
    expect(served[0]! + served[1]!).toBe(4 * 8);
    expect(Math.min(...served)).toBeGreaterThan(0);
    // Eight letters of the prompt, up to four of the answer.
    expect(records()[0]!['rollout/reward_mean']).toBeGreaterThanOrEqual(6);
  });

  it.each([
    [['--reward.remote_url', 'http://a/get_reward,b/get_reward'], /"b\/get_reward" is no URL/],
    [
      ['--reward.remote_url', 'http://a', '--reward.remote.key_env', 'NO_KEY'],
      /key_env is NO_KEY, and this .* not set/,
    ],
    [['--reward.remote_url', 'math', '--reward.remote.timeout', '5'], /reward\.remote\.timeout has no effect without/],
  ])('refuses %j', async (argv, message) => {
    await expect(reinforce(prepared(argv).context, openPolicy)).rejects.toThrow(message);
  });
});

describe('reward.remote_url judge', () => {
  it('trains on what a language model gives, and shows its scores and how many were asked for', async () => {
    const judge = await jsonServer(({ body }) => ({
      choices: [{ message: { content: `Score: ${body.messages[0].content.length}` } }],
    }));
    open.push(judge);
    const settings = { url: `${judge.url}/v1`, model: 'm', template: '{answer}', max: '4' };
    const argv = Object.entries(settings).flatMap(([name, value]) => [`--reward.judge.${name}`, value]);
    const { context, records } = prepared(['--reward.remote_url', 'judge', ...argv]);
    await reinforce(context, openPolicy);
    const [metrics] = records();
    expect(metrics!['rollout/reward_mean']).toBeCloseTo(metrics!['rollout/judge_score']! / 4, 12);
    // Every answer of the 4 groups of 8 was asked for or stood in the cache.
    expect(metrics!['rollout/judge_cached']).toBeCloseTo(1 - judge.requests.length / (4 * 8), 12);
  });
});

describe('reward.remote_url of a file', () => {
  it('is called in a thread of its own, where it knows this package', async () => {
    const source = `import { exactMatch } from 'tokenloop/rewards';
import { isMainThread } from 'node:worker_threads';
if (isMainThread) throw new Error('this is no thread of its own');
export default exactMatch({ extract: () => 'a' });`;
    writeFileSync(join(cwd, 'reward.ts'), source);
    const { context, records } = prepared(['--reward.remote_url', 'reward.ts']);
    await reinforce(context, openPolicy);
    const [step] = records();
    expect([step!['rollout/reward_mean'], step!['rollout/failed'] ?? 0]).toEqual([1, 0]);
  });
});

describe('reward.model_name_or_path', () => {
  const counting = () => {
    const closed = { times: 0 };
    const close = async () => void closed.times++;
    return { closed, openModel: async () => Object.assign(modelReward({ scorer: lengths }), { close }) };
  };
  const never = () => Promise.reject(new Error('no critic is needed'));

  it('scores prompt and answer, and is closed with the run', async () => {
    const { closed, openModel } = counting();
    const { context, records } = prepared(['--reward.model_name_or_path', 'rm']);
    await reinforce(context, openPolicy, never, openModel);
    expect(records()[0]!['rollout/reward_mean']).toBeGreaterThanOrEqual(6);
    expect(closed.times).toBe(1);
  });

  it('is closed when the run does not begin', async () => {
    const { closed, openModel } = counting();
    const { context } = prepared(['--reward.model_name_or_path', 'rm', '--data.input_key', 'question']);
    await expect(reinforce(context, openPolicy, never, openModel)).rejects.toThrow(/no column "question"/);
    expect(closed.times).toBe(1);
  });

  it('serves tree search, too', async () => {
    const { closed, openModel } = counting();
    const tree = ['--agent.search.strategy', 'turns', '--rollout.n_samples_per_prompt', '2'];
    const { context, records } = prepared(['--reward.model_name_or_path', 'rm', ...tree]);
    await reinforce(context, openPolicy, never, openModel);
    expect(records()[0]!['rollout/reward_mean']).toBeGreaterThanOrEqual(6);
    expect(closed.times).toBe(1);
  });

  it('is a part of a mixture, whose parts are logged', async () => {
    const { closed, openModel } = counting();
    const mixture = ['--reward.mixture', '{math: 10, model: 0.5}', '--reward.model_name_or_path', 'rm'];
    const { context, records } = prepared(mixture);
    await reinforce(context, openPolicy, never, openModel);
    const [step] = records();
    const sum = 10 * step!['rollout/reward_math']! + 0.5 * step!['rollout/reward_model']!;
    expect(step!['rollout/reward_mean']).toBeCloseTo(sum, 6);
    expect(step!['rollout/math_answered']).toBeDefined();
    expect(closed.times).toBe(1);
  });

  it.each([
    [['--reward.mixture', '{model: 1}'], /part model: say which by reward\.model_name_or_path/],
    [['--reward.mixture', '{math: 1}', '--reward.model_name_or_path', 'rm'], /exactly one of .* are given/],
    [
      ['--reward.remote_url', 'math', '--reward.model_name_or_path', 'rm'],
      /exactly one of .*reward\.remote_url and reward\.model_name_or_path are given/,
    ],
    [
      ['--reward.remote_url', 'math', '--reward.max_len', '9'],
      /reward\.max_len has no effect without reward\.model_name/,
    ],
    [['--reward.remote_url', 'math', '--reward.normalize_enable'], /reward\.normalize_enable has no effect without/],
  ])('refuses %j', async (argv, message) => {
    const { openModel } = counting();
    await expect(reinforce(prepared(argv).context, openPolicy, never, openModel)).rejects.toThrow(message);
  });
});
