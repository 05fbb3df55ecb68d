import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { workplace, writeOptions, writeRows, writeTinyModel } from './workplace.ts';

/** Episodes of one step of the small job. */
export const EPISODES_PER_STEP = 3 * 4;

/**
 * An environment of two turns that rewards each `a`. To interrupt a run at a known place, the episode whose number is
 * in PAUSE_AT says `paused` and waits: for an interrupt of the process when UNTIL says so, else for ever. Episodes from
 * the number in HUGE_FROM on are given rewards beyond float32.
 */
const AGENT = `
import { once } from 'node:events';

let made = 0;
export default class {
  async reset({ prompt }) {
    made += 1;
    if (made === Number(process.env.PAUSE_AT)) {
      process.stdout.write('paused\\n');
      const until = process.env.UNTIL === 'interrupt' ? 'SIGINT' : process.env.UNTIL;
      await (until === 'never' ? new Promise(() => undefined) : once(process, until));
    }
    return { observation: prompt };
  }
  step({ actionText, turn }) {
    const huge = made >= Number(process.env.HUGE_FROM) ? 1e300 : 1;
    const reward = (huge * [...actionText].filter(character => character === 'a').length) / 4;
    return { reward, done: turn === 1, feedback: '?' };
  }
}
`;

/**
 * A directory with a job of six steps that takes a second: `rl.yaml`, `model`, `tasks.jsonl` and `agent.mjs`. Every
 * part of what a checkpoint must hold is in use: learning-rate schedule, mini-batches, an adapting KL coefficient, data
 * order over more than one pass.
 */
export async function smallJob(): Promise<string> {
  const directory = workplace();
  await writeTinyModel(join(directory, 'model'));
  const prompts = ['1+2', '12', '3*4-5', '60-15', '9', '7.5/3', '8-1'];
  writeRows(
    join(directory, 'tasks.jsonl'),
    prompts.map(input => ({ input, label: 'a' })),
  );
  writeFileSync(join(directory, 'agent.mjs'), AGENT);
  writeOptions(join(directory, 'rl.yaml'), {
    'actor.model_name_or_path': 'model',
    'actor.adam.lr': 1e-2,
    'actor.lr_scheduler': 'cosine',
    'actor.lr_warmup_ratio': 0.2,
    'data.prompt_dataset': 'tasks.jsonl',
    'train.agent_func_path': 'agent.mjs',
    'train.num_episodes': 3,
    'train.max_steps': 6,
    'train.batch_size': 6,
    'train.max_epochs': 2,
    'train.full_determinism_enable': true,
    'rollout.batch_size': 3,
    'rollout.n_samples_per_prompt': 4,
    'rollout.max_new_tokens': 4,
    'algo.kl.init_coef': 0.05,
    'algo.kl.target': 0.01,
    'algo.kl.horizon': 100,
    'ckpt.save_steps': 2,
    'engine.threads': 1,
  });
  return directory;
}
