import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { onnxCritic } from '../../src/engines/onnx/index.ts';
import { scoredSequence } from '../../src/engines/scored.ts';
import { readEpisodes } from '../../src/episode/read.ts';
import { readRewardStatistics } from '../../src/nn/checkpoint/reward-statistics.ts';
import { loadRenderer } from '../../src/text/chat-renderer.ts';
import { preferencePair } from '../../src/training/preferences.ts';
import { dispatched } from '../support/in-process.ts';
import { readRecords, workplace, writeRows, writeTinyModel } from '../support/workplace.ts';

/** rm and dpo on the embedded engine, from a file of pairs to a model that prefers what people preferred. */

const cwd = workplace();
/** The answer that begins with a is preferred to the one that begins with c. */
const rows = Array.from({ length: 48 }, (_, i) => ({ q: `${i}+1`, chosen: `a${i}`, rejected: `c${i % 7}` }));
beforeAll(async () => {
  await writeTinyModel(join(cwd, 'model'));
  writeRows(join(cwd, 'pairs.jsonl'), rows.slice(0, 32));
  writeRows(join(cwd, 'held-out.jsonl'), rows.slice(32));
});

const common = [
  ...['--model.model_name_or_path', 'model', '--data.dataset', 'pairs.jsonl', '--data.prompt_key', 'q'],
  ...['--data.apply_chat_template', '--eval.dataset', 'held-out.jsonl', '--engine.threads', '1'],
  ...['--train.batch_size', '16', '--train.max_epochs', '5', '--lr_scheduler', 'constant'],
];

it('rm makes a model whose scores order held-out pairs, with the statistics to normalise them', async () => {
  const { code, out, err } = await dispatched(['rm', ...common, '--adam.lr', '0.04', '--run.dir', 'rm'], cwd);
  expect({ code, err }).toEqual({ code: 0, err: [] });
  expect(out.join('')).toMatch(/\nresult: held-out accuracy 0\.\d{3} -> 1\.000, \d+\.\d s, seed 42\n$/);
  const records = readRecords(join(cwd, 'rm/metrics.jsonl'));
  expect(records).toHaveLength(11);
  expect(records[0]).toMatchObject({ 'eval/loss': Math.log(2) });
  const last = records.at(-1)!;

  const config = JSON.parse(readFileSync(join(cwd, 'rm/model/config.json'), 'utf8'));
  expect(config.architectures).toEqual([expect.stringMatching(/ForSequenceClassification$/)]);
  // Transformers counts them: one label.
  expect(Object.keys(config.id2label)).toEqual(['0']);
  const { mean, std } = readRewardStatistics(join(cwd, 'rm/model'));
  expect([mean, std]).toEqual([last['eval/reward_mean'], last['eval/reward_std']]);

  const critic = await onnxCritic({ model: join(cwd, 'rm/model'), threads: 1, training: false });
  const renderer = await loadRenderer(join(cwd, 'rm/model'));
  const scores = await Promise.all(
    rows.slice(32).map(async ({ q, ...answers }) => {
      const pair = preferencePair({ prompt: [{ role: 'user', content: q }], ...answers, margin: 0 }, renderer);
      const sequences = [pair.chosen, pair.rejected].map(({ tokens }) => scoredSequence(tokens));
      const [chosen, rejected] = await critic.values({ sequences, temperature: 1 });
      return [chosen![0]!, rejected![0]!] as const;
    }),
  );
  await critic.close();
  // As evaluated at the end of training: float32, batched in another way.
  const all = scores.flat();
  expect(all.reduce((sum, score) => sum + score, 0) / all.length).toBeCloseTo(mean, 4);
  for (const [chosen, rejected] of scores) expect(chosen).toBeGreaterThan(rejected);
});

it('rl is rewarded by the model that rm made, normalised by its statistics', async () => {
  const tasks = rows.slice(0, 8).map(({ q }) => ({ input: [{ role: 'user', content: q }] }));
  writeRows(join(cwd, 'tasks.jsonl'), tasks);
  const run = join(cwd, 'rewarded');
  const rl = [
    ...['rl', '--actor.model_name_or_path', 'model', '--data.prompt_dataset', 'tasks.jsonl'],
    ...['--data.apply_chat_template', '--rollout.batch_size', '4', '--rollout.n_samples_per_prompt', '4'],
    ...['--rollout.max_new_tokens', '3', '--train.max_steps', '1', '--engine.threads', '1', '--run.dir', run],
    ...['--reward.model_name_or_path', 'rm/model', '--reward.normalize_enable'],
  ];
  const { code, err } = await dispatched(rl, cwd);
  expect({ code, err }).toEqual({ code: 0, err: [] });
  const model = join(cwd, 'rm/model');
  const critic = await onnxCritic({ model, threads: 1, training: false });
  const renderer = await loadRenderer(model);
  const [end] = renderer.stopTokens;
  const { mean, std } = readRewardStatistics(model);
  const rewards: number[] = [];
  for await (const { segments, steps } of readEpisodes(join(run, 'episodes.jsonl'))) {
    const tokens = segments.flatMap(segment => [...segment.tokens]);
    if (tokens.at(-1) !== end) tokens.push(end!);
    const read = Int32Array.from(tokens);
    // An untrained policy also says what no text does: marks inside an answer are not in its text.
    const answer = read.subarray(segments[0]!.tokens.length, -1);
    if (renderer.decode(answer) !== renderer.decode(answer, { special: true })) continue;
    const [values] = await critic.values({ sequences: [scoredSequence(read)], temperature: 1 });
    // float32, of batches of another size
    expect(steps[0]!.reward).toBeCloseTo((values![0]! - mean) / std, 3);
    rewards.push(steps[0]!.reward);
  }
  await critic.close();
  expect(new Set(rewards).size).toBeGreaterThan(4);

  const without = rl.map(word => (word === 'rm/model' ? 'model' : word === run ? `${run}-2` : word));
  const refused = await dispatched(without, cwd);
  expect(refused.code).toBe(2);
  expect(refused.err.join('')).toMatch(/reward\.model_name_or_path model has no score head/);
});

it.each([
  ['weights', ['--adam.lr', '0.02']],
  ['an adapter, whose reference is its base', ['--adam.lr', '0.1', '--ds.lora.rank', '4']],
  ['ipo with a reference of its own', ['--adam.lr', '0.02', '--ref.model_name_or_path', 'model', '--model.ipo_enable']],
])('dpo makes a policy that prefers the chosen answers: %s', async (name, more) => {
  const run = join(cwd, `dpo-${name}`);
  const { code, out, err } = await dispatched(['dpo', ...common, ...more, '--run.dir', run], cwd);
  expect({ code, err }).toEqual({ code: 0, err: [] });
  expect(out.join('')).toMatch(/\nresult: held-out accuracy 0\.000 -> 1\.000, /);
  const records = readRecords(join(run, 'metrics.jsonl'));
  expect(records.at(-1)!['eval/chosen_reward']).toBeGreaterThan(records.at(-1)!['eval/reject_reward'] as number);
  expect(readdirSync(join(run, 'model'))).toContain('model.safetensors');
});

it('dpo continues a run that was stopped as if it never had been', async () => {
  const steps = ['--train.max_steps', '6', '--ckpt.save_steps', '3'];
  const whole = join(cwd, 'whole');
  await dispatched(['dpo', ...common, ...steps, '--run.dir', whole], cwd);
  const parted = join(cwd, 'parted');
  await dispatched(['dpo', ...common, '--train.max_steps', '3', '--ckpt.save_steps', '3', '--run.dir', parted], cwd);
  const { code } = await dispatched(['dpo', '--resume', parted, '--train.max_steps', '6'], cwd);
  expect(code).toBe(0);
  const lasting = (dir: string) =>
    readRecords(join(dir, 'metrics.jsonl'))
      .filter(({ step }) => step === 6)
      .map(({ 'train/loss': train, 'eval/loss': held }) => [train, held]);
  expect(lasting(parted)).toEqual(lasting(whole));
});

it.each([
  ['an unknown column', ['--data.chosen_key', 'good'], /pairs\.jsonl:1: no column "good" \(data\.chosen_key\)/],
  ['a loss that does not exist', ['--model.loss_type', 'hinge'], /loss_type/],
  [
    'a window that is too small',
    ['--data.input_template', `${'1'.repeat(80)}{}`],
    /pairs\.jsonl:1: the longer answer has/,
  ],
])('names %s', async (_, more, message) => {
  const { code, err } = await dispatched(['rm', ...common, ...more, '--run.dir', join(cwd, 'refused')], cwd);
  expect(code).toBe(2);
  expect(err.join('')).toMatch(message);
});
