import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { readEpisodes } from '../../src/episode/read.ts';
import { validateEpisode } from '../../src/episode/validate.ts';
import { openCheckpoint } from '../../src/nn/checkpoint/directory.ts';
import { dispatched } from '../support/in-process.ts';
import { root, tokenloop } from '../support/process.ts';
import { readRecords, workplace, writeTinyModel } from '../support/workplace.ts';

/** Commands beside rl, each once from its first word to its last line. */

const cwd = workplace();
beforeAll(() => writeTinyModel(join(cwd, 'model')));
const example = (name: string) => join(root, 'examples/calculator-agent', name);

it('sft makes a model from scratch that generate can use', async () => {
  const argv = ['--train.max_steps', '4', '--train.batch_size', '16', '--data.max_samples', '64'];
  const places = ['--engine.threads', '1', '--run.dir', join(cwd, 'sft'), '--ckpt.output_dir', join(cwd, 'made')];
  const heldOut = ['--eval.dataset', example('demonstrations.jsonl'), '--eval.max_samples', '16'];
  const recipe = ['sft', '--config', 'examples/calculator-agent/sft.yaml'];
  const { code, out, err } = await tokenloop([...recipe, ...argv, ...places, ...heldOut], { cwd: root });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const result = /\nresult: held-out loss (\d\.\d{3}) -> (\d\.\d{3}), \d+\.\d s, seed 1\n$/.exec(out);
  const [before, after] = result!.slice(1).map(Number);
  // An untrained policy knows nothing of its 28 tokens: 3.3 nats, and a little more for what it believes.
  expect(before).toBeGreaterThan(3);
  expect(after).toBeLessThan(before! - 0.1);
  expect(readRecords(join(cwd, 'sft/metrics.jsonl')).map(({ step }) => step)).toEqual([0, 1, 2, 3, 4]);
  expect(openCheckpoint(join(cwd, 'made')).weights).toHaveLength(openCheckpoint(example('model')).weights.length);
  const said = await tokenloop(['generate', '--model.model_name_or_path', 'made'], { cwd, input: '1+2' });
  expect(said).toMatchObject({ code: 0, err: expect.stringMatching(/^\d+ tokens, ended by (stop|length)\n$/) });
});

it('eval reports every metric, one episode and the result', async () => {
  const argv = ['--model.model_name_or_path', example('model'), '--eval.dataset', example('test.jsonl')];
  const how = ['--agent.env', 'calculator', '--data.input_key', 'prompt', '--data.label_key', 'label'];
  const size = ['--data.apply_chat_template', '--eval.max_samples', '16', '--eval.n_samples_per_prompt', '2'];
  const { code, out, err } = await tokenloop(['eval', ...argv, ...how, ...size, '--run.dir', 'eval'], { cwd });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(/^(?:episode +\d+\/32 {2}reward \d\.\d{3} {2}failed 0 %\n)+metric +test *\n/);
  expect(out).toMatch(/\npass2 +\d\.\d{3} *\n/);
  expect(out).toMatch(/\neval:test:\d+\/0: done, score [01]\n/);
  const accuracy = /\nresult: accuracy (\d\.\d{3}), \d+\.\d s, seed 42\n$/.exec(out)![1];
  const [metrics] = readRecords(join(cwd, 'eval/metrics.jsonl'));
  expect(metrics).toMatchObject({ 'eval/test/pass1': expect.closeTo(Number(accuracy), 3) });
  let episodes = 0;
  for await (const episode of readEpisodes(join(cwd, 'eval/episodes.jsonl'))) {
    validateEpisode(episode, { vocabularySize: 28 });
    episodes += 1;
  }
  expect(episodes).toBe(32);
});

it('generate streams', async () => {
  const argv = ['generate', '--model.model_name_or_path', 'model', '--prompt', '1+2', '--engine.threads', '1'];
  const { code, out, err } = await dispatched(argv, cwd);
  expect(code).toBe(0);
  // A piece for every token but the last, which may be the end of the answer, and the line break.
  const [, tokens] = /^(\d+) tokens, ended by (?:stop|length)\n$/.exec(err.join(''))!;
  expect(Number(tokens)).toBeGreaterThan(4);
  expect(out.length).toBeGreaterThan(4);
  expect(Math.max(...out.map(piece => piece.length))).toBeLessThan(12);
});

it('doctor finds this machine ready', async () => {
  const { code, out } = await tokenloop(['doctor'], { cwd });
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/Ready to train\.\n$/) });
});
