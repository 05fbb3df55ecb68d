/**
 * The whole chain: warm start, reward model, PPO with a critic against it, DPO on the same pairs, and what readers truly
 * think of each:
 *
 *   npx tsx examples/rlhf/run.ts [--seed 1] [--threads 1] [sft] [rm] [ppo] [dpo] [judge]
 *
 * Words name the steps to run; without them it is all. Runs go below runs/rlhf-<seed>, what they came to into
 * results.json, its curve into curve.svg.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chart, curveOf, judged, lastOf, type SeedResult } from './results.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' }, threads: { type: 'string', default: '1' } },
});
const root = join(import.meta.dirname, '../..');
const runs = `runs/rlhf-${values.seed}`;
const model = (stage: string) => `${runs}/${stage}/model`;

/** Runs a command of tokenloop with the run directory `name`. */
async function tokenloop(command: string, name: string, ...words: string[]): Promise<void> {
  rmSync(join(root, runs, name), { recursive: true, force: true });
  const common = ['--run.dir', `${runs}/${name}`, '--train.seed', values.seed, '--engine.threads', values.threads];
  console.log(`\n${name}`);
  const job = spawn(process.execPath, [...process.execArgv, 'src/cli/main.ts', command, ...words, ...common], {
    cwd: root,
    stdio: 'inherit',
  });
  const [code] = (await once(job, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${code ?? 'a signal'}`);
}

const config = (stage: string) => ['--config', `examples/rlhf/${stage}.yaml`];
const start = ['--model.model_name_or_path', model('sft')];

const steps: Record<string, () => Promise<void>> = {
  sft: () => tokenloop('sft', 'sft', ...config('sft')),
  rm: () => tokenloop('rm', 'rm', ...config('rm'), ...start),
  ppo: () =>
    tokenloop(
      'rl',
      'ppo',
      ...config('ppo'),
      ...['--actor.model_name_or_path', model('sft'), '--critic.model_name_or_path', model('rm')],
      ...['--reward.model_name_or_path', model('rm')],
    ),
  dpo: () => tokenloop('dpo', 'dpo', ...config('dpo'), ...start),
  judge: async () => keep(await judge()),
};

/** Has the true preference answer for a model's answers to the held-out prompts. */
async function evaluate(stage: string): Promise<void> {
  const answering = ['--model.model_name_or_path', model(stage), '--data.apply_chat_template'];
  const data = ['--eval.dataset', 'examples/rlhf/test.jsonl', '--data.input_key', 'prompt'];
  const sampling = ['--eval.temperature', '1', '--eval.n_samples_per_prompt', '4', '--rollout.max_new_tokens', '8'];
  const reward = ['--reward.remote_url', 'examples/rlhf/true-preference.js', '--eval.report', 'liking=liking'];
  await tokenloop('eval', `${stage}-judged`, ...answering, ...data, ...sampling, ...reward);
}

async function judge(): Promise<SeedResult> {
  await Promise.all(['sft', 'ppo', 'dpo'].map(evaluate));
  const path = (name: string) => join(root, runs, name);
  const judgedAs = (stage: string) => judged(path(`${stage}-judged`), path('sft-judged'));
  return {
    seed: Number(values.seed),
    accuracy: { rm: lastOf(path('rm'), 'eval/acc'), dpo: lastOf(path('dpo'), 'eval/acc') },
    sft: judgedAs('sft'),
    ppo: judgedAs('ppo'),
    dpo: judgedAs('dpo'),
    curve: await curveOf(path('ppo')),
  };
}

function keep(result: SeedResult): void {
  const file = join(import.meta.dirname, 'results.json');
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as SeedResult[]) : [];
  const results = [...before.filter(({ seed }) => seed !== result.seed), result].sort((a, b) => a.seed - b.seed);
  const round = (_: string, value: unknown) => (typeof value === 'number' ? Number(value.toFixed(4)) : value);
  // The innermost objects in one line each.
  const text = JSON.stringify(results, round, 1).replace(/\{[^{}[\]]*\}/g, object => object.replace(/\s+/g, ' '));
  writeFileSync(file, `${text}\n`);
  writeFileSync(join(import.meta.dirname, 'curve.svg'), chart(JSON.parse(text) as SeedResult[]));
  console.log(`\nseed ${result.seed}: reward model right on ${result.accuracy.rm.toFixed(3)} of held-out pairs`);
  console.table({ 'warm start': result.sft, PPO: result.ppo, DPO: result.dpo });
}

const wanted = positionals.length === 0 ? Object.keys(steps) : positionals;
const unknown = wanted.filter(name => !Object.hasOwn(steps, name));
if (unknown.length > 0)
  throw new Error(`${unknown.join(' ')}: no such step; there are ${Object.keys(steps).join(', ')}`);
for (const name of wanted) await steps[name]!();
