import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tokenloop } from '../support/process.ts';
import { smallJob } from '../support/small-job.ts';
import { below, readRecords } from '../support/workplace.ts';

/** A run whose disk refuses. A limit on file sizes stands for a full disk: writes are cut short and fail. */

let cwd: string;
beforeAll(async () => {
  cwd = await smallJob();
});
const run = (dir: string, ...more: string[]) => ['rl', '--config', 'rl.yaml', '--run.dir', dir, ...more];
const tooLarge = (what: string) =>
  expect.stringMatching(new RegExp(`^tokenloop: could not write .*${what}.*: the file is larger than .*EFBIG.*\\n$`));

describe.skipIf(process.platform === 'win32')('no space left', () => {
  it('for the configuration: nothing is left', async () => {
    const { code, err } = await tokenloop(run('nothing'), { cwd, fileLimit: 1 });
    expect({ code, err }).toEqual({ code: 1, err: tooLarge('config\\.yaml') });
    expect(below(join(cwd, 'nothing'))).toEqual([]);
  });

  it('for a checkpoint: none is left, and every line is whole', async () => {
    const { code, err } = await tokenloop(run('checkpoint'), { cwd, fileLimit: 24 });
    expect({ code, err }).toEqual({ code: 1, err: tooLarge('step-00000002') });
    expect(below(join(cwd, 'checkpoint'))).toEqual(['checkpoints', 'config.yaml', 'episodes.jsonl', 'metrics.jsonl']);
    expect(readRecords(join(cwd, 'checkpoint/metrics.jsonl')).map(({ step }) => step)).toEqual([1, 2]);
  });

  it('for metrics the run goes on; for the model it ends, and every line is whole', async () => {
    const { code, out, err } = await tokenloop(run('metrics', '--ckpt.save_steps', '100'), { cwd, fileLimit: 12 });
    expect({ code, err }).toEqual({ code: 1, err: tooLarge('/model') });
    expect(out.match(/tracker jsonl: .*EFBIG.*; the run goes on/g)).toHaveLength(1);
    const left = ['config.yaml', 'episodes.jsonl', 'metrics.jsonl'];
    expect(below(join(cwd, 'metrics'))).toEqual(left);
    for (const file of left.slice(1)) readRecords(join(cwd, 'metrics', file));
  });
});

it('a place that cannot be written to is refused', async () => {
  const { code, err } = await tokenloop(run('tasks.jsonl/run'), { cwd });
  const says = /^tokenloop: could not write .*run\/lock\.json: a part of the path is a file: choose another path/;
  expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(says) });
});

it('a directory that holds a run is not written over', async () => {
  const argv = run('twice', '--train.max_steps', '1');
  expect(await tokenloop(argv, { cwd })).toMatchObject({ code: 0 });
  const before = readRecords(join(cwd, 'twice/metrics.jsonl'));
  const { code, err } = await tokenloop(argv, { cwd });
  expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/run\.dir twice holds a run already; choose/) });
  expect(readRecords(join(cwd, 'twice/metrics.jsonl'))).toEqual(before);
});
