import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { options } from '../options/option.ts';
import { ConfigError } from './error.ts';
import { resolve } from './load.ts';

const declared = options({
  'actor.model_name_or_path': { schema: z.string().min(1).default('tiny'), help: 'The policy', aliases: ['pretrain'] },
  'actor.adam.lr': { schema: z.number().positive().default(1e-6), help: 'Learning rate', aliases: ['learning_rate'] },
  'actor.eps_clip_low_high': {
    schema: z
      .tuple([z.number(), z.number()])
      .refine(([low, high]) => low < high, 'the first must be below the second')
      .nullable()
      .default(null),
    help: 'Clip',
  },
  'algo.kl.estimator': { schema: z.enum(['k1', 'k2', 'k3']).default('k1'), help: 'Estimator' },
  'eval.prompts': { schema: z.array(z.string()).default([]), help: 'Files' },
  'rollout.batch_size': { schema: z.number().int().positive().default(8), help: 'Prompts' },
  'train.async_enable': { schema: z.boolean().default(false), help: 'Asynchronous', aliases: ['async_train'] },
  'train.seed': { schema: z.number().int().default(42), help: 'Seed' },
  'run.dir': { schema: z.string().optional(), help: 'Directory' },
  'eval.steps': { schema: z.number().int().optional(), help: 'Interval' },
  'eval.report': { schema: z.record(z.string(), z.string()).default({}), help: 'Report' },
});

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'tokenloop-config-'));
});
afterEach(() => rmSync(cwd, { recursive: true }));

function values(argv: string, yaml?: string) {
  return resolved(argv, yaml).values;
}

function resolved(argv: string, yaml?: string) {
  if (yaml !== undefined) writeFileSync(join(cwd, 'c.yaml'), yaml);
  const words = argv === '' ? [] : argv.split(' ');
  return resolve(declared, { argv: yaml === undefined ? words : ['--config', 'c.yaml', ...words], cwd });
}

function faults(argv: string, yaml?: string): readonly string[] {
  try {
    resolved(argv, yaml);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(fault => fault.replaceAll(cwd, '<cwd>'));
    throw error;
  }
  return [];
}

describe('resolve', () => {
  it('starts from the defaults', () => {
    expect(values('')).toEqual({
      'actor.model_name_or_path': 'tiny',
      'actor.adam.lr': 1e-6,
      'actor.eps_clip_low_high': null,
      'algo.kl.estimator': 'k1',
      'eval.prompts': [],
      'rollout.batch_size': 8,
      'train.async_enable': false,
      'train.seed': 42,
      'run.dir': undefined,
      'eval.report': {},
    });
  });

  it('lets the file win over defaults, the command line over the file, and a later word over an earlier one', () => {
    const yaml = 'train.seed: 1\nrollout: { batch_size: 4 } # prompts\n';
    expect(values('', yaml)).toMatchObject({ 'train.seed': 1, 'rollout.batch_size': 4 });
    expect(values('--train.seed 2', yaml)['train.seed']).toBe(2);
    expect(values('--train.seed 2 train.seed=3', yaml)['train.seed']).toBe(3);
    expect(values('train.seed=3 --train.seed=2', yaml)['train.seed']).toBe(2);
  });

  it.each([
    ['--actor.adam.lr 1e-5', 'actor.adam.lr', 1e-5],
    ['actor.adam.lr=.5', 'actor.adam.lr', 0.5],
    ['--train.seed -1', 'train.seed', -1],
    ['--train.async_enable', 'train.async_enable', true],
    ['--train.async_enable false', 'train.async_enable', false],
    ['--train.async_enable=true', 'train.async_enable', true],
    ['train.async_enable=true --no-train.async_enable', 'train.async_enable', false],
    ['--actor.eps_clip_low_high 0.2 0.28', 'actor.eps_clip_low_high', [0.2, 0.28]],
    ['--actor.eps_clip_low_high 0.2,0.28', 'actor.eps_clip_low_high', [0.2, 0.28]],
    ['--actor.eps_clip_low_high=[0.2,0.28]', 'actor.eps_clip_low_high', [0.2, 0.28]],
    ['actor.eps_clip_low_high=-1,0.28', 'actor.eps_clip_low_high', [-1, 0.28]],
    ['actor.eps_clip_low_high=0.2,0.28 --actor.eps_clip_low_high none', 'actor.eps_clip_low_high', null],
    ['eval.steps=3 --eval.steps none', 'eval.steps', undefined],
    ['--run.dir none', 'run.dir', 'none'],
    ['--eval.prompts a.jsonl 7 --train.seed 1', 'eval.prompts', ['a.jsonl', '7']],
    ['--eval.prompts a.jsonl train.seed=1', 'eval.prompts', ['a.jsonl']],
    ['eval.prompts=a.jsonl', 'eval.prompts', ['a.jsonl']],
    ['--actor.model_name_or_path 7', 'actor.model_name_or_path', '7'],
    ['--actor.model_name_or_path a,b', 'actor.model_name_or_path', 'a,b'],
    ['--actor.model_name_or_path none', 'actor.model_name_or_path', 'none'],
    ['--run.dir=a=b', 'run.dir', 'a=b'],
    ['eval.report={"a":"b","c":"d"}', 'eval.report', { a: 'b', c: 'd' }],
    ['--run.dir {a', 'run.dir', '{a'],
  ])('understands %s', (argv, name, value) => {
    expect(values(argv)[name as keyof typeof declared]).toEqual(value);
  });

  it('reads nested, dotted and mixed keys, lists, anchors and comments', () => {
    const yaml = `# recipe
actor:
  adam.lr: 1e-5   # as text this would not be a number
  eps_clip_low_high: &clip
    - 0.1
    - 0.3
eval: { prompts: [a, "7"] }
run.dir: runs/x
`;
    expect(values('', yaml)).toMatchObject({
      'actor.adam.lr': 1e-5,
      'actor.eps_clip_low_high': [0.1, 0.3],
      'eval.prompts': ['a', '7'],
      'run.dir': 'runs/x',
    });
    expect(values('', '')).toEqual(values(''));
    expect(values('', 'run.dir:\neval: { steps: null }\n')).toMatchObject({
      'run.dir': undefined,
      'eval.steps': undefined,
    });
  });

  it('takes bare words and short forms where options have them', () => {
    const placed = options({
      'play.env': { schema: z.string().optional(), help: 'Environment', position: 0, short: 'env' },
      'play.seed': { schema: z.int().default(1), help: 'Seed', position: 1 },
    });
    const of = (...argv: string[]) => resolve(placed, { argv, cwd });
    const both = { 'play.env': 'chess', 'play.seed': 7 };
    expect(of('chess', '7')).toEqual({ values: both, notices: [] });
    expect(of('--env', 'chess', '--play.seed', '7')).toEqual({ values: both, notices: [] });
    expect(of('go', '--env', 'chess', 'play.seed=7').values).toEqual({ 'play.env': 'go', 'play.seed': 7 });
    expect(() => of('chess', '7', '8')).toThrow('8: not an option; write --name value or name=value');
    expect(() => of('chess', 'often')).toThrow('play.seed is "often"; expected an integer');
  });

  it('understands older names everywhere and says so once each', () => {
    const { values, notices } = resolved('--learning_rate 0.1 async_train=true', 'pretrain: big\n');
    expect(values).toMatchObject({
      'actor.model_name_or_path': 'big',
      'actor.adam.lr': 0.1,
      'train.async_enable': true,
    });
    expect(notices).toEqual([
      'c.yaml:1:1: pretrain is an older name of actor.model_name_or_path; both are understood',
      '--learning_rate is an older name of actor.adam.lr; both are understood',
      'async_train is an older name of train.async_enable; both are understood',
    ]);
    expect(resolved('--no-async_train').values['train.async_enable']).toBe(false);
  });
});

describe('faults', () => {
  it.each([
    ['--train.sed 1', '--train.sed: unknown option; did you mean train.seed?'],
    ['--seed 1', '--seed: unknown option; did you mean train.seed?'],
    ['--actor.learning-rate 1', '--actor.learning-rate: unknown option; --help lists the options'],
    ['rolout.batch_size=1', 'rolout.batch_size: unknown option; did you mean rollout.batch_size?'],
    ['--no-train.async', '--no-train.async: unknown option; did you mean train.async_enable?'],
    ['--no-train.seed', '--no-train.seed: train.seed is not a switch; only switches have a --no- form'],
    ['--train.seed', '--train.seed: a value is missing'],
    ['--train.seed --train.async_enable', '--train.seed: a value is missing'],
    ['--train.seed seven', '--train.seed is "seven"; expected an integer'],
    ['--train.seed 1.5', '--train.seed is 1.5; expected an integer'],
    ['train.seed=', 'train.seed is ""; expected an integer'],
    ['--rollout.batch_size 0', '--rollout.batch_size is 0; expected an integer > 0'],
    ['--actor.adam.lr=-1', '--actor.adam.lr is -1; expected a number > 0'],
    ['--algo.kl.estimator k4', '--algo.kl.estimator is "k4"; expected one of k1, k2, k3'],
    ['--train.async_enable=yes', '--train.async_enable is "yes"; expected true or false'],
    [
      '--actor.eps_clip_low_high 0.2',
      '--actor.eps_clip_low_high is 0.2; expected 2 values: a number, a number or null',
    ],
    ['--actor.eps_clip_low_high 0.3 0.2', '--actor.eps_clip_low_high is [0.3,0.2]; the first must be below the second'],
    ['--eval.report {a', '--eval.report is "{a"; expected a mapping'],
    ['--train.seed none', '--train.seed is "none"; expected an integer'],
    ['train', 'train: not an option; write --name value or name=value'],
    ['--config', '--config: the path of a YAML file is missing'],
    ['--config missing.yaml', '--config missing.yaml: no such file (looked in <cwd>); give the path of a YAML file'],
    ['--config .', '--config .: is a directory; give the path of a YAML file'],
    [
      '--ds.zero_stage 2',
      '--ds.zero_stage: not an option here: DeepSpeed is not used: weights, gradients and optimizer state are held once, in memory; leave it out',
    ],
  ])('%s', (argv, fault) => {
    expect(faults(argv)).toEqual([fault]);
  });

  it.each([
    ['train:\n  sed: 1\n', 'c.yaml:2:3: train.sed: unknown option; did you mean train.seed?'],
    ['train:\n  seed: x\n', 'c.yaml:2:3: train.seed is "x"; expected an integer'],
    ['train.seed:\n', 'c.yaml:1:1: train.seed is null; expected an integer'],
    ['train: 3\n', 'c.yaml:1:8: train must hold "name: value" lines, not 3'],
    ['- 1\n', 'c.yaml:1:1: the file must hold "name: value" lines, not [1]'],
    ['train.seed: 1\ntrain: { seed: 2 }\n', 'c.yaml:2:10: train.seed: already set at c.yaml:1:1; keep one of them'],
    [
      'pretrain: a\nactor.model_name_or_path: b\n',
      'c.yaml:2:1: actor.model_name_or_path: already set at c.yaml:1:1; keep one of them',
    ],
    ['foo:\n  bar: { baz: 1 }\n', 'c.yaml:2:10: foo.bar.baz: unknown option; --help lists the options'],
    ['foo: {}\n', 'c.yaml:1:1: foo: unknown option; --help lists the options'],
    [
      'vllm:\n  enforce_eager: true\n',
      'c.yaml:2:3: vllm.enforce_eager: not an option here: sampling runs on the embedded engine, which has no vLLM to configure; leave it out',
    ],
    ['train.seed: 1\ntrain.seed: 2\n', 'c.yaml:2:1: Map keys must be unique'],
  ])('in a file: %j', (yaml, fault) => {
    expect(faults('', yaml)).toEqual([fault]);
  });

  it('names line and column of malformed YAML', () => {
    expect(faults('', 'train:\n  seed: [1, 2\nrun.dir: x\n')[0]).toMatch(/^c\.yaml:\d+:\d+: \S/);
  });

  it('reports all of them together', () => {
    expect(faults('--train.seed x --foo 1 2', 'rollout.batch_size: -1\nbar: 1\n')).toEqual([
      'c.yaml:2:1: bar: unknown option; --help lists the options',
      '--foo: unknown option; --help lists the options',
      'c.yaml:1:1: rollout.batch_size is -1; expected an integer > 0',
      '--train.seed is "x"; expected an integer',
    ]);
  });

  it('quotes the rule of a form of text', () => {
    const template = options({ template: { schema: z.string().includes('{}'), help: '' } });
    expect(() => resolve(template, { argv: ['template=x'], cwd })).toThrow('template is "x"; must include "{}"');
  });

  it('says which option is missing', () => {
    const required = options({ 'data.prompt_dataset': { schema: z.string(), help: 'Tasks to train on' } });
    expect(() => resolve(required, { argv: [], cwd })).toThrow(
      new ConfigError(['data.prompt_dataset is missing; expected text (Tasks to train on)']),
    );
  });
});
