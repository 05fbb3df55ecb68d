import { appendFileSync, cpSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokenloop } from '../support/process.ts';
import { smallJob } from '../support/small-job.ts';

/** `tokenloop eval` of models, of checkpoints and of a service, and the comparison of their results. */

let cwd: string;
const TASKS = ['--eval.dataset', 'again=tasks.jsonl', '--train.agent_func_path', 'agent.mjs'];
const SAMPLING = ['--eval.temperature', '1', '--eval.n_samples_per_prompt', '2', '--rollout.max_new_tokens', '4'];
const EVAL = ['eval', ...TASKS, ...SAMPLING, '--eval.pass_score', '0.5', '--train.full_determinism_enable'];
const STEP_4 = 'run/checkpoints/step-00000004';
const result = (name: string) => JSON.parse(readFileSync(join(cwd, name), 'utf8'));

beforeAll(async () => {
  cwd = await smallJob();
  const ema = ['--train.enable_ema', '--train.ema_beta', '0.5'];
  const argv = ['rl', '--config', 'rl.yaml', '--run.dir', 'run', '--ckpt.save_hf', ...ema];
  expect(await tokenloop(argv, { cwd })).toMatchObject({ code: 0 });
});

describe('a checkpoint of a run', () => {
  it('is evaluated as it was, policy and average, like the models that were written of them', async () => {
    const of = async (output: string, ...argv: string[]) => {
      const { code, err } = await tokenloop([...EVAL, '--eval.output', output, ...argv], { cwd });
      expect({ code, err }).toEqual({ code: 0, err: '' });
      return result(output);
    };
    const last = 'run/checkpoints/step-00000006';
    const checkpoint = await of('checkpoint.json', '--model.model_name_or_path', last);
    const model = await of('model.json', '--model.model_name_or_path', 'run/model');
    const copy = await of('copy.json', '--model.model_name_or_path', `${last}/model`);
    expect(checkpoint.version).toBe(24);
    expect(checkpoint.tasks).toEqual(model.tasks);
    expect(copy.tasks).toEqual(model.tasks);
    expect(model.tasks[0]).toMatchObject({ source: 'again', attempts: 2 });
    const average = await of('average.json', '--model.model_name_or_path', last, '--eval.weights', 'average');
    const averaged = await of('averaged.json', '--model.model_name_or_path', 'run/model_ema');
    expect(average.tasks).toEqual(averaged.tasks);

    const compared = await tokenloop(['eval', '--eval.compare', 'average.json', 'checkpoint.json'], { cwd });
    expect(compared).toMatchObject({ code: 0, err: '' });
    expect(compared.out).toMatch(
      /before: .*\(average\)\nafter: .*\n\nsource +metric +tasks +before +after +change .*\n.*\nagain +pass1 +7 /,
    );
  });

  it.each([
    [['--eval.endpoint', 'http://localhost'], /exactly one of model\.model_name_or_path and/],
    [
      ['--ds.lora.adapter', 'here', '--ds.load_in_8bit'],
      /ds\.load_in_8bit and ds\.lora\.adapter would have no effect: a checkpoint of a run has the adapter/,
    ],
  ])('is refused with %j', async (more, message) => {
    const { code, err } = await tokenloop([...EVAL, '--model.model_name_or_path', STEP_4, ...more], { cwd });
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(message) });
  });

  it('that is damaged is refused', async () => {
    cpSync(join(cwd, STEP_4), join(cwd, 'damaged'), { recursive: true });
    appendFileSync(join(cwd, 'damaged/trainer.json'), ' ');
    const { code, err } = await tokenloop([...EVAL, '--model.model_name_or_path', 'damaged'], { cwd });
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(/the checkpoint .*damaged is damaged: .*trainer\.json/),
    });
  });
});

describe('a service', () => {
  let server: Server;
  afterAll(() => server?.close());

  it('is evaluated by its text', async () => {
    server = createServer((incoming, response) => {
      incoming
        .resume()
        .on('end', () => response.end(JSON.stringify({ choices: [{ text: 'aa', finish_reason: 'stop' }] })));
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const endpoint = ['--eval.endpoint', url, '--eval.endpoint_model', 'served', '--eval.output', 'served.json'];
    const { code, out, err } = await tokenloop([...EVAL, ...endpoint], { cwd });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    // Two turns of two letters a, a quarter each.
    expect(out).toMatch(/result: accuracy 1\.000/);
    expect(result('served.json').tasks).toHaveLength(7);
    expect(result('served.json').tasks[0]).toMatchObject({ attempts: 2, solved: 2, reward: 1 });
  });
});
