import { join } from 'node:path';
import { expect, it } from 'vitest';
import { dispatched } from './support/in-process.ts';
import { root, startNode } from './support/process.ts';
import { workplace, writeRows, writeTinyModel } from './support/workplace.ts';

/** examples/served-reward with models that know nothing: of two reward servers one is killed, and no episode fails. */

const cwd = workplace();
const pairs = Array.from({ length: 8 }, (_, i) => ({ q: `${i}+1`, chosen: `a${i}`, rejected: `c${i}` }));

it('goes on with the reward server that is left', async () => {
  await writeTinyModel(join(cwd, 'start'));
  writeRows(join(cwd, 'pairs.jsonl'), pairs);
  const data = ['--data.dataset', 'pairs.jsonl', '--eval.dataset', 'pairs.jsonl', '--data.prompt_key', 'q'];
  const rm = ['--model.model_name_or_path', 'start', '--data.apply_chat_template', '--train.max_epochs', '1'];
  expect(await dispatched(['rm', ...data, ...rm, '--run.dir', 'rm'], cwd)).toMatchObject({ code: 0 });

  const script = join(root, 'examples/served-reward/run.ts');
  const small = ['--rollout.batch_size', '4', '--rollout.n_samples_per_prompt', '2', '--rollout.max_new_tokens', '3'];
  const policy = [
    '--actor.model_name_or_path',
    'start',
    '--data.prompt_dataset',
    'pairs.jsonl',
    '--data.input_key',
    'q',
  ];
  const words = ['--reward', 'rm/model', '--steps', '4', '--', ...policy, ...small, '--train.batch_size', '4'];
  const { code, out, err } = await startNode([script, ...words], { cwd }).ended;
  expect({ code, err }).toMatchObject({ code: 0 });
  const steps = [...out.matchAll(/^step (\d): reward -?\d+\.\d{3}, failed episodes (\d)$/gm)].map(match =>
    match.slice(1),
  );
  expect(steps).toEqual(['1', '2', '3', '4'].map(step => [step, '0']));
  expect(out).toMatch(/^step 2: .*\nkilled the server with pid \d+$/m);
});
