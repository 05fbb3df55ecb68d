import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { abcPolicy } from '../../tests/support/abc-policy.ts';
import { evaluationOptions } from '../config/eval.ts';
import { resolve } from '../config/load.ts';
import { rlOptions } from '../config/rl.ts';
import { sftOptions } from '../config/sft.ts';
import { parseEpisode } from '../episode/serialize.ts';
import type { Options } from '../options/option.ts';
import type { CommandContext } from './command.ts';
import { evaluate } from './eval.ts';
import { expandResume } from './resume.ts';
import { reinforce } from './rl.ts';
import { fineTune } from './sft.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'cli-rl-'));
  const rows = Array.from({ length: 8 }, (_, i) => JSON.stringify({ input: `say ${i}:`, label: 'a' }));
  writeFileSync(join(cwd, 'tasks.jsonl'), rows.join('\n'));
  writeFileSync(
    join(cwd, 'reward.mjs'),
    'export default batch => batch.map(({ text, label }) => ({ reward: text.startsWith(label) ? 1 : 0, metrics: { length: text.length } }));',
  );
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function contextOf<T extends Options>(options: T, argv: readonly string[]) {
  const written: string[] = [];
  const stop = new AbortController();
  const stream = { write: (text: string) => written.push(text) };
  const context: CommandContext<T> = {
    ...resolve(options, { argv, cwd }),
    cwd,
    stdin: process.stdin,
    stdout: stream,
    stderr: stream,
    interrupt: { signal: stop.signal, dispose: () => undefined },
  };
  return { context, written, stop };
}

const RL = [
  ...['--actor.model_name_or_path', 'abc', '--data.prompt_dataset', 'tasks.jsonl', '--data.label_key', 'label'],
  ...['--reward.remote_url', 'reward.mjs', '--rollout.batch_size', '4', '--rollout.max_new_tokens', '4'],
  ...[
    '--train.max_steps',
    '4',
    '--train.num_episodes',
    '9',
    '--actor.adam.lr',
    '2',
    '--actor.lr_scheduler',
    'constant',
  ],
  ...['--eval.dataset', 'tasks.jsonl', '--eval.temperature', '1', '--eval.report', 'accuracy=pass1', 'length=length'],
  ...['--eval.max_samples', '4'],
];
const open = async () => abcPolicy().engine;
const lines = (path: string) => readFileSync(join(cwd, path), 'utf8').trimEnd().split('\n');

/** Metrics of a run without those that measure time. */
function metricsOf(run: string): unknown[] {
  return lines(`${run}/metrics.jsonl`).map(line => {
    const entries = Object.entries(JSON.parse(line)).filter(([name]) => !name.startsWith('timing/'));
    return Object.fromEntries(entries);
  });
}

describe('rl', () => {
  it('trains, shows what happened, and leaves a run directory that repeats the run', async () => {
    const { engine } = abcPolicy();
    const { context, written } = contextOf(rlOptions, [...RL, '--run.dir', 'first']);
    await reinforce(context, async () => engine);
    expect(engine.closed).toBe(1);
    expect(readdirSync(join(cwd, 'first')).sort()).toEqual([
      'checkpoints',
      'config.yaml',
      'episodes.jsonl',
      'metrics.jsonl',
      'model',
    ]);
    const shown = written.join('').trimEnd().split('\n');
    expect(shown[0]).toMatch(/^4 of 4 evaluation tasks are trained on, too \(the first is tasks:1\)/);
    expect(shown[1]).toMatch(/^step 0\/4/);
    expect(shown.join('\n')).toMatch(/held-out +before +after +change\n/);
    expect(shown.join('\n')).toMatch(/run directory: first \(/);
    expect(shown.filter(line => line.includes(': done, score') || line.includes(': truncated'))).toHaveLength(3);
    expect(shown.at(-1)).toMatch(
      /^result: accuracy 0\.\d{3} -> [01]\.\d{3}, length \d\.\d{3} -> \d\.\d{3}, \d+\.\d s, seed 42$/,
    );
    const metrics = metricsOf('first');
    expect(metrics.map(record => (record as { step: number }).step)).toEqual([0, 1, 2, 3, 4]);
    const episodes = lines('first/episodes.jsonl').map(line => ({ ...JSON.parse(line), episode: parseEpisode(line) }));
    expect(episodes.filter(({ phase }) => phase === 'train')).toHaveLength(4 * 4 * 8);
    expect(episodes.filter(({ phase, step }) => phase === 'eval' && step === 4)).toHaveLength(4);

    const again = contextOf(rlOptions, ['--config', 'first/config.yaml', '--run.dir', 'second']);
    await reinforce(again.context, open);
    expect(metricsOf('second')).toEqual(metrics);
    expect(lines('second/config.yaml')).toEqual(lines('first/config.yaml'));
  });

  it('says at its end how faithfully a recorded agent was trained on, by the names the program asks for', async () => {
    const program = `export async function agent({ task, baseURL, apiKey }) {
      const messages = [{ role: 'user', content: task.prompt }];
      const ask = async () => {
        const body = JSON.stringify({ model: 'gpt-x', messages, temperature: 0.3 });
        const headers = { authorization: 'Bearer ' + apiKey };
        const reply = await (await fetch(baseURL + '/chat/completions', { method: 'POST', headers, body })).json();
        return reply.choices[0].message;
      };
      messages.push(await ask(), { role: 'user', content: 'more' });
      return (await ask()).content.startsWith(task.label) ? 1 : 0;
    }`;
    writeFileSync(join(cwd, 'program.mjs'), program);
    const argv = RL.filter(word => !['--reward.remote_url', 'reward.mjs'].includes(word));
    const own = ['--train.agent_func_path', 'program.mjs', '--agent.models', 'gpt-x', '--train.max_steps', '1'];
    const { context, written } = contextOf(rlOptions, [
      ...argv,
      ...own,
      '--run.dir',
      'run',
      '--eval.report',
      'turns=turns',
    ]);
    await reinforce(context, open);
    expect(written.join('')).toMatch(
      /32 recorded episodes: 100\.0 % of \d+ tokens of history replayed as sampled; recorded and replayed log-probs differ by at most \S+ nats; branches: none; 64 answers sampled as the run does/,
    );
  });

  it('interrupted it says how to continue, and continues', async () => {
    await reinforce(contextOf(rlOptions, [...RL, '--run.dir', 'whole']).context, open);
    const { context, written, stop } = contextOf(rlOptions, [...RL, '--run.dir', 'run']);
    const { engine } = abcPolicy({
      sampler: sampler => ({
        ...sampler,
        publish: async learner => {
          await sampler.publish(learner);
          if (learner.version === 2) stop.abort();
        },
      }),
    });
    await reinforce(context, async () => engine);
    const [, flags] = /continue with: npx tokenloop rl (.*)\n/.exec(written.join(''))!;
    expect(existsSync(join(cwd, 'run/model'))).toBe(false);
    const rest = contextOf(rlOptions, expandResume(flags!.split(' '), rlOptions, cwd));
    await reinforce(rest.context, open);
    expect(metricsOf('run')).toEqual(metricsOf('whole'));
    expect(lines('run/episodes.jsonl')).toEqual(lines('whole/episodes.jsonl'));
    expect(lines('run/model/bigram.json')).toEqual(lines('whole/model/bigram.json'));
    expect(rest.written.at(-1)).toMatch(/result: accuracy/);
  });

  it('refuses what cannot work before it writes anything', async () => {
    const refused = async (message: RegExp, ...argv: string[]) => {
      const { context } = contextOf(rlOptions, [...RL, '--run.dir', 'refused', ...argv]);
      await expect(reinforce(context, open)).rejects.toThrow(message);
      expect(existsSync(join(cwd, 'refused'))).toBe(false);
    };
    await refused(
      /exactly one of agent\.env.*agent\.env and reward\.remote_url are given/,
      '--agent.env',
      'calculator',
    );
    await refused(/no such file/, '--reward.remote_url', 'none.mjs');
    await refused(/cannot read the dataset/, '--data.prompt_dataset', 'none.jsonl');
    await refused(/tasks\.jsonl:1: no column "question"/, '--data.input_key', 'question');
    await refused(/n_samples_per_prompt/, '--rollout.n_samples_per_prompt', '1');
    await refused(/train\.ema_beta is for train\.enable_ema, which is off/, '--train.ema_beta', '0.9');
    await refused(/eval\.ema_enable is for train\.enable_ema, which is off/, '--eval.ema_enable');
    const best = ['--eval.dataset', 'null', '--ckpt.best_metric_key', 'eval/tasks/pass1'];
    await refused(/ckpt\.best_metric_key compares evaluations: give eval\.dataset/, ...best);
    const { context } = contextOf(rlOptions, [...RL, '--run.dir', 'refused']);
    await expect(reinforce(context, () => Promise.reject(new Error('no tensor')))).rejects.toThrow('no tensor');
    expect(existsSync(join(cwd, 'refused'))).toBe(false);
  });

  it('does not write over a run', async () => {
    const argv = [...RL, '--run.dir', 'run', '--train.max_steps', '1'];
    await reinforce(contextOf(rlOptions, argv).context, open);
    await expect(reinforce(contextOf(rlOptions, argv).context, open)).rejects.toThrow(
      /run\.dir run holds a run already/,
    );
  });

  it('leaves malformed rows out when told to, and says so', async () => {
    writeFileSync(join(cwd, 'tasks.jsonl'), 'nonsense\n{"input":"say:","label":"a"}\n');
    const { context, written } = contextOf(rlOptions, [...RL, '--run.dir', 'run', '--data.on_malformed', 'skip']);
    await reinforce(context, open);
    expect(written.join('')).toMatch(/tasks\.jsonl: 1 malformed row left out, the first:\n.*tasks\.jsonl:1: not JSON/);
  });
});

describe('agents of a run', () => {
  it('can be an environment class, a function that makes one, or an executor in a file', async () => {
    const environment = `{ reset({ prompt }) { return { observation: prompt }; } step() { return { reward: 1, done: true }; } }`;
    writeFileSync(join(cwd, 'class.mjs'), `export default class ${environment}`);
    writeFileSync(join(cwd, 'function.mjs'), `export default () => (${environment.replace('} step', '}, step')})`);
    for (const file of ['class', 'function']) {
      const argv = RL.map(word => (word === '--reward.remote_url' ? '--train.agent_func_path' : word));
      const given = argv.map(word => (word === 'reward.mjs' ? `${file}.mjs` : word));
      const { context, written } = contextOf(rlOptions, [...given, '--run.dir', file]);
      await reinforce(context, open);
      expect(written.at(-1)).toMatch(/accuracy 1\.000 -> 1\.000/);
    }
  });
});

describe('eval', () => {
  const argv = [
    ...['--model.model_name_or_path', 'abc', '--eval.dataset', 'tasks.jsonl', '--data.label_key', 'label'],
    ...['--reward.remote_url', 'reward.mjs', '--rollout.max_new_tokens', '4', '--eval.temperature', '1'],
    ...['--eval.n_samples_per_prompt', '4'],
  ];

  it('shows every metric, an episode and the result; writes when asked', async () => {
    const { context, written } = contextOf(evaluationOptions, [...argv, '--run.dir', 'evaluation']);
    await evaluate(context, open);
    const shown = written.join('');
    for (const name of ['pass1', 'pass2', 'pass4', 'failed_rate', 'length'])
      expect(shown).toMatch(new RegExp(`^${name} `, 'm'));
    expect(shown.trimEnd()).toMatch(/result: accuracy 0\.\d{3}, \d+\.\d s, seed 42$/);
    expect(lines('evaluation/episodes.jsonl')).toHaveLength(32);
    expect(metricsOf('evaluation')).toHaveLength(1);
  });
});

describe('sft', () => {
  it('trains on conversations and pairs, and writes the model', async () => {
    const conversation = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'ab' },
    ];
    writeFileSync(
      join(cwd, 'chats.jsonl'),
      Array(8)
        .fill(JSON.stringify({ messages: conversation }))
        .join('\n'),
    );
    writeFileSync(
      join(cwd, 'pairs.jsonl'),
      Array(8)
        .fill(JSON.stringify({ q: 'x', a: 'ab' }))
        .join('\n'),
    );
    const common = [
      '--model.model_name_or_path',
      'abc',
      '--train.batch_size',
      '4',
      '--adam.lr',
      '3',
      '--train.max_epochs',
      '4',
    ];
    for (const argv of [
      ['--data.dataset', 'chats.jsonl', '--data.input_key', 'messages', '--run.dir', 'chats'],
      ['--data.dataset', 'pairs.jsonl', '--data.input_key', 'q', '--data.output_key', 'a', '--run.dir', 'pairs'],
    ]) {
      const { engine } = abcPolicy();
      const { context, written } = contextOf(sftOptions, [...common, ...argv, '--lr_scheduler', 'constant']);
      await fineTune(context, async () => engine);
      const [, before, after] = /result: loss (\S+) -> (\S+), /.exec(written.join(''))!;
      expect(Number(after)).toBeLessThan(Number(before) - 0.2);
      expect(readdirSync(join(cwd, argv.at(-1)!)).sort()).toEqual(['config.yaml', 'metrics.jsonl', 'model']);
      expect(engine.closed).toBe(1);
    }
  });

  it('refuses an example longer than the window, naming the row', async () => {
    writeFileSync(join(cwd, 'long.jsonl'), JSON.stringify({ q: 'x'.repeat(5000), a: 'a' }));
    const argv = ['--model.model_name_or_path', 'abc', '--data.dataset', 'long.jsonl', '--data.input_key', 'q'];
    const { context } = contextOf(sftOptions, [...argv, '--data.output_key', 'a', '--run.dir', 'run']);
    await expect(fineTune(context, open)).rejects.toThrow(
      /long\.jsonl:1: the example has 5002 tokens and the model sees 4096/,
    );
    expect(existsSync(join(cwd, 'run'))).toBe(false);
  });
});
