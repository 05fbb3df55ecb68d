import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { brokenCopy, bytes, config, tensors } from '../support/broken.ts';
import { dispatched } from '../support/in-process.ts';
import { type Ended, tokenloop } from '../support/process.ts';
import { smallJob } from '../support/small-job.ts';
import { below, readRecords } from '../support/workplace.ts';

/**
 * Input that the executable must refuse: one clear message that names the value and the remedy, exit code 1 or 2, no
 * stack trace, nothing half-written, and the process ends by itself (support/process.ts kills one that does not).
 * With FAULTS=brief only the first of each kind is a process, and the others are refused within this one.
 */

let cwd: string;
beforeAll(async () => {
  cwd = await smallJob();
});

/** What is wrong, how it is made, and what is said about it: with code 2 nothing has been begun. */
interface Case {
  readonly what: string;
  readonly make?: () => void | Promise<void>;
  readonly argv: readonly string[];
  readonly code: 1 | 2;
  readonly says: RegExp;
}

const file = (name: string, text: string) => () => writeFileSync(join(cwd, name), text);

type Execution = (argv: readonly string[]) => Promise<Ended>;
const asProcess: Execution = argv => tokenloop(argv, { cwd });
/** For what is refused before there is anything that could keep a process alive. */
const inProcess: Execution = async argv => {
  const { code, out, err } = await dispatched(argv, cwd);
  return { code, out: out.join(''), err: err.join('') };
};

/** For what may have begun something that could keep a process alive. */
const asProcesses = (faults: readonly Case[]) =>
  faults.map((fault, i) => ({ ...fault, execute: i > 0 && process.env.FAULTS === 'brief' ? inProcess : asProcess }));

/** Runs the small job with what is wrong. Returns the directory that the run was given. */
async function refuse({ what, make, argv, code, says }: Case, execute: Execution, out = /^$/): Promise<string> {
  await make?.();
  const run = `run of ${what}`;
  const base = argv.includes('--config') ? [] : ['--config', 'rl.yaml'];
  const ended = await execute(['rl', ...base, '--run.dir', run, ...argv]);
  expect(ended).toEqual({ code, out: expect.stringMatching(out), err: expect.stringMatching(says) });
  expect(ended.err).toMatch(/^(tokenloop: [^\n]+\n)+$/);
  expect(ended.err).not.toMatch(/^\s+at .*:\d+/m);
  return join(cwd, run);
}

/** Nothing has been begun: there is no run directory. */
async function refusedAtOnce({ execute = inProcess, ...fault }: Case & { readonly execute?: Execution }) {
  expect(existsSync(await refuse(fault, execute))).toBe(false);
}

describe('options', () => {
  const faults: readonly Case[] = [
    {
      what: 'a missing config',
      argv: ['--config', 'none.yaml'],
      code: 2,
      says: /--config none\.yaml: no such file \(looked in .*\); give the path of a YAML file/,
    },
    {
      what: 'malformed YAML',
      make: file('malformed.yaml', 'rollout:\n  batch_size: [1, 2\n'),
      argv: ['--config', 'malformed.yaml'],
      code: 2,
      says: /malformed\.yaml:3:1: .*flow sequence/i,
    },
    {
      what: 'unknown and wrong options',
      make: file('wrong.yaml', 'actor.model_name_or_path: model\nrollout:\n  batchsize: 4\n  temperature: warm\n'),
      argv: ['--config', 'wrong.yaml', '--train.max_step', '5', '--data.prompt_dataset', 'tasks.jsonl'],
      code: 2,
      says: /wrong\.yaml:3:3: rollout\.batchsize: unknown option; did you mean rollout\.batch_size\?\n.*--train\.max_step: unknown option; did you mean train\.max_steps\?\n.*wrong\.yaml:4:3: rollout\.temperature is "warm"; expected a number > 0\n/,
    },
    {
      what: 'two agents',
      argv: ['--agent.env', 'calculator'],
      code: 2,
      says: /exactly one of .*; agent\.env and train\.agent_func_path are given/,
    },
    {
      what: 'a group too small',
      argv: ['--rollout.n_samples_per_prompt', '1'],
      code: 2,
      says: /rollout\.n_samples_per_prompt.* 1/,
    },
  ];
  it.concurrent.each(faults)('$what', refusedAtOnce);
});

describe('datasets', () => {
  const dataset = (what: string, text: string | undefined, says: RegExp): Case => {
    const name = `${what}.jsonl`;
    const make = text === undefined ? {} : { make: file(name, text) };
    return { what, ...make, argv: ['--data.prompt_dataset', name], code: 2, says };
  };
  const faults: readonly Case[] = [
    dataset(
      'no file',
      undefined,
      /cannot read the dataset .*no file\.jsonl: no such file; give a file \(JSONL, JSON, CSV or Parquet\)/,
    ),
    dataset('no JSON', '{"input":"1","label":""}\n{"input":\n', /no JSON\.jsonl:2: not JSON .*on_malformed to skip/),
    dataset(
      'no column',
      '{"input":"1"}\n{"question":"2"}\n',
      /no column\.jsonl:2: no column "input" \(data\.input_key\); this row has question\./,
    ),
    dataset('no text', '{"input":17}\n', /no text\.jsonl:1: column "input" must be text .* got 17\./),
    dataset('no rows', '\n', /no rows\.jsonl: no rows in it; a dataset has at least one/),
    {
      what: 'held-out data',
      argv: ['--eval.dataset', 'none.jsonl'],
      code: 2,
      says: /cannot read the dataset .*none\.jsonl/,
    },
  ];
  it.concurrent.each(faults)('$what', refusedAtOnce);
});

describe('checkpoints', () => {
  const checkpoint = (what: string, change: (directory: string) => void | Promise<void>, says: RegExp): Case => {
    const make = () => brokenCopy(join(cwd, 'model'), what, change);
    return { what, make, argv: ['--actor.model_name_or_path', what], code: 1, says };
  };
  const faults: readonly Case[] = [
    {
      what: 'no directory',
      argv: ['--actor.model_name_or_path', 'nowhere'],
      code: 1,
      says: /nowhere: no such directory; give one with a checkpoint in it/,
    },
    checkpoint(
      'no tokenizer',
      directory => rmSync(join(directory, 'tokenizer.json')),
      /no tokenizer has no tokenizer\.json; give a checkpoint directory/,
    ),
    checkpoint(
      'no weights',
      directory => rmSync(join(directory, 'model.safetensors')),
      /neither model\.safetensors nor model\.safetensors\.index\.json is there/,
    ),
    checkpoint(
      'missing tensor',
      tensors(all => all.slice(1)),
      /model\.safetensors: tensor model\.embed_tokens\.weight is missing, though .*config\.json asks for it/,
    ),
    checkpoint(
      'wrong shape',
      config({ intermediate_size: 48 }),
      /tensor model\.layers\.0\.mlp\.gate_proj\.weight has shape \[32,16\], config\.json asks for \[48,16\]/,
    ),
    checkpoint(
      'truncated file',
      bytes(all => all.subarray(0, 5000)),
      /model\.safetensors: tensor .* outside of the \d+ bytes of data; the file is damaged: fetch or write it again/,
    ),
    checkpoint(
      'unknown architecture',
      config({ architectures: ['GPT2LMHeadModel'] }),
      /config\.json: architectures is \["GPT2LMHeadModel"\]; one of LlamaForCausalLM/,
    ),
    checkpoint(
      'unknown dtype',
      bytes(all => Buffer.from(all.toString('latin1').replace('"F32"', '"F4" '), 'latin1')),
      /tensor .* has dtype "F4"; only F32, F16, BF16 are read: convert the checkpoint/,
    ),
    checkpoint(
      'malformed config',
      directory => writeFileSync(join(directory, 'config.json'), '{"architectures"'),
      /malformed config\/config\.json is not valid JSON/,
    ),
  ];
  it.concurrent.each(asProcesses(faults))('$what', refusedAtOnce);
});

/** It goes wrong in the first step: the run directory says how far the run came, in whole lines. */
async function stopped({ execute, ...fault }: Case & { readonly execute: Execution }) {
  const run = await refuse(fault, execute, /^failed episodes +count +the first\n.*\n\w+ +12 +step 1, train, .*\n$/);
  expect(below(run)).toEqual(['config.yaml', 'episodes.jsonl', 'failures.json', 'metrics.jsonl']);
  expect(Object.values(JSON.parse(readFileSync(join(run, 'failures.json'), 'utf8')))).toMatchObject([{ count: 12 }]);
  expect(readRecords(join(run, 'metrics.jsonl'))).toEqual([]);
}

/** What is said when every episode of the first step failed in the same way. */
function failed(account: string): RegExp {
  const rate = '12 of 12 episodes failed, more than rollout\\.max_failure_rate 0\\.5 allows';
  return new RegExp(`training stopped at step 1: ${rate}:\\n.*12 x ${account}`);
}

describe('environments, prompts and weights', () => {
  /** A function of the environment replaced; two keys of the same name in a class are no error, the last one counts. */
  const environment = (what: string, method: string, account: string, ...argv: string[]): Case => {
    const text = `export default class {
      reset({ prompt }) { return { observation: prompt }; }
      step() { return { reward: 1, done: true }; }
      ${method}
    }`;
    const agent = ['--train.agent_func_path', `${what}.mjs`];
    return { what, make: file(`${what}.mjs`, text), argv: [...agent, ...argv], code: 1, says: failed(account) };
  };
  const faults: readonly Case[] = [
    environment('throws', 'step() { throw new Error("no power"); }', 'environment: environment\\.step: no power'),
    environment(
      'returns NaN',
      'step() { return { reward: NaN, done: true }; }',
      'environment: environment\\.step: reward: expected number, got NaN',
    ),
    environment(
      'never returns',
      'step() { return new Promise(() => undefined); }',
      'timeout: environment\\.step: no answer within 100 ms; raise the deadline',
      '--agent.call_timeout_ms',
      '100',
    ),
    environment('returns garbage', 'step() { return "42"; }', 'environment: environment\\.step: .*got "42"'),
    environment('begins with garbage', 'reset() { return 5; }', 'environment: environment\\.reset: .*got 5'),
    {
      what: 'a prompt longer than the window',
      make: file('long.jsonl', `${JSON.stringify({ input: '1'.repeat(70) })}\n`),
      argv: ['--data.prompt_dataset', 'long.jsonl'],
      code: 1,
      says: failed(
        'overflow: a prompt of 70 tokens leaves no room for an answer in the model.s context of 64 tokens; shorten',
      ),
    },
    {
      what: 'a prompt the tokenizer cannot express',
      make: file('foreign.jsonl', '{"input":"1+Z"}\n'),
      argv: ['--data.prompt_dataset', 'foreign.jsonl'],
      code: 1,
      says: failed('environment: prompt: the vocabulary cannot express "Z"'),
    },
    {
      what: 'weights that are not finite',
      make: () =>
        brokenCopy(
          join(cwd, 'model'),
          'not finite',
          tensors(all => all.map(one => ({ ...one, data: one.data.map(() => Number.NaN) }))),
        ),
      argv: ['--actor.model_name_or_path', 'not finite'],
      code: 1,
      says: failed('provider: policy: .*weights are not finite'),
    },
  ];
  it.concurrent.each(asProcesses(faults))('$what', stopped);
});

/** Single-turn answers scored by a file: the environment of the small job is taken away. */
describe('rewards', () => {
  const scoredBy = (what: string, text: string): Pick<Case, 'what' | 'make' | 'argv'> => ({
    what,
    make: file(`${what}.mjs`, text),
    argv: ['--train.agent_func_path', 'null', '--reward.remote_url', `${what}.mjs`],
  });
  const failing = (what: string, text: string, account: string): Case => ({
    ...scoredBy(what, text),
    code: 1,
    says: failed(`reward: reward: ${account}`),
  });
  const failures = [
    failing('reward NaN', 'export default batch => batch.map(() => NaN);', 'reward: expected number, got NaN'),
    failing(
      'reward text',
      'export default batch => batch.map(() => "1");',
      'expected a number or an object .*, got "1"',
    ),
    failing('no rewards', 'export default () => [];', 'expected 1 scores, one for each answer, got 0'),
    failing('reward throws', 'export default () => { throw new Error("no judge"); };', 'no judge'),
  ];
  it.concurrent.each(asProcesses(failures))('$what', stopped);

  // What does not load is first, and so always a process: vitest loads files itself and words it in another way.
  const broken: readonly Case[] = [
    {
      ...scoredBy('reward that does not load', 'export default () => {'),
      code: 2,
      says: /reward file .*does not load\.mjs: .*end of input/,
    },
    { ...scoredBy('no reward', 'export const x = 1;'), code: 2, says: /exports nothing as reward_func or default/ },
  ];
  it.concurrent.each(asProcesses(broken))('$what', refusedAtOnce);
});

describe('files of code', () => {
  const agent = (what: string, text: string, says: RegExp): Case => ({
    what,
    make: file(`${what}.mjs`, text),
    argv: ['--train.agent_func_path', `${what}.mjs`],
    code: 2,
    says,
  });
  const faults: readonly Case[] = [
    // First, as above.
    agent(
      'agent that does not load',
      'export default {',
      /train\.agent_func_path agent that does not load\.mjs: .*end of input/,
    ),
    {
      what: 'no agent file',
      argv: ['--train.agent_func_path', 'none.mjs'],
      code: 2,
      says: /train\.agent_func_path none\.mjs: no such file \(looked for .*\)/,
    },
    agent(
      'agent without a default',
      'export const x = 1;',
      /without a default\.mjs: (the default export must be|it exports nothing where an agent is expected)/,
    ),
  ];
  it.concurrent.each(asProcesses(faults))('$what', refusedAtOnce);
});
