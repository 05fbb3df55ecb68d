import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { start, tokenloop } from '../support/process.ts';
import { EPISODES_PER_STEP, smallJob } from '../support/small-job.ts';
import { below, lastingMetrics, readRecords } from '../support/workplace.ts';

/** A run that is killed or interrupted continues from its checkpoint and ends as one that never stopped. */

let cwd: string;
const argv = (run: string, ...more: string[]) => ['rl', '--config', 'rl.yaml', '--run.dir', run, ...more];
const checkpoints = (run: string) => below(join(cwd, run)).filter(name => /^checkpoints\/[^/]+$/.test(name));
const model = (run: string) => readFileSync(join(cwd, run, 'model/model.safetensors'));
/** Starts a run whose first episode in the given step waits. */
const paused = (run: string, step: number, until: 'interrupt' | 'never') => {
  const env = { PAUSE_AT: String((step - 1) * EPISODES_PER_STEP + 1), UNTIL: until };
  return start(argv(run), { cwd, env });
};

const TAKEN_OVER = /^took .* over from process \d+ on .*, which has ended without giving it back\n$/;

/** Continues the run to its end and compares it with the one that was never stopped. */
async function expectToEndAsIfNeverStopped(run: string, { killed = false } = {}): Promise<void> {
  const { code, err } = await tokenloop(['rl', '--resume', run], { cwd });
  expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(killed ? TAKEN_OVER : /^$/) });
  expect(lastingMetrics(join(cwd, run))).toEqual(lastingMetrics(join(cwd, 'whole')));
  const episodes = (of: string) => readRecords(join(cwd, of, 'episodes.jsonl'));
  expect(episodes(run)).toEqual(episodes('whole'));
  expect(model(run).equals(model('whole'))).toBe(true);
}

beforeAll(async () => {
  cwd = await smallJob();
  expect(await tokenloop(argv('whole'), { cwd })).toMatchObject({ code: 0, err: '' });
  expect(checkpoints('whole')).toEqual([2, 4, 6].map(step => `checkpoints/step-0000000${step}`));
});

describe('a killed run', () => {
  it('continues from its newest checkpoint', async () => {
    const { child, ended, said } = paused('killed', 4, 'never');
    await said('stdout', 'paused');
    child.kill('SIGKILL');
    expect(await ended).toMatchObject({ code: null });
    expect(readRecords(join(cwd, 'killed/metrics.jsonl')).map(({ step }) => step)).toEqual([1, 2, 3]);
    expect(checkpoints('killed')).toEqual(['checkpoints/step-00000002']);

    // What a kill inside the writing of a checkpoint, or of a line, leaves.
    mkdirSync(join(cwd, 'killed/checkpoints/step-00000004.tmp/learner'), { recursive: true });
    writeFileSync(join(cwd, 'killed/metrics.jsonl'), '{"step":4,"train/lo', { flag: 'a' });
    await expectToEndAsIfNeverStopped('killed', { killed: true });
    expect(checkpoints('killed')).toEqual(checkpoints('whole'));
  });

  it('starts again when there is no checkpoint yet', async () => {
    const { child, ended, said } = paused('early', 2, 'never');
    await said('stdout', 'paused');
    child.kill('SIGKILL');
    await ended;
    const { code, err } = await tokenloop(argv('early', '--ckpt.load_enable'), { cwd });
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/^no checkpoint in .*early.*\ntook .*\n$/) });
    expect(lastingMetrics(join(cwd, 'early'))).toEqual(lastingMetrics(join(cwd, 'whole')));
  });
});

describe('Ctrl-C', () => {
  it('finishes the step, writes a checkpoint and exits with 130; the run continues from there', async () => {
    const { child, ended, said } = paused('interrupted', 3, 'interrupt');
    await said('stdout', 'paused');
    child.kill('SIGINT');
    const { code, out, err } = await ended;
    expect({ code, err }).toEqual({ code: 130, err: expect.stringContaining('interrupted: finishing the step') });
    expect(out).toContain('npx tokenloop rl --resume interrupted\n');
    expect(checkpoints('interrupted')).toEqual([2, 3].map(step => `checkpoints/step-0000000${step}`));
    expect(existsSync(join(cwd, 'interrupted/model'))).toBe(false);
    await expectToEndAsIfNeverStopped('interrupted');
  });

  it('a second one ends the process at once', async () => {
    const { child, ended, said } = paused('twice', 3, 'never');
    await said('stdout', 'paused');
    child.kill('SIGINT');
    await said('stderr', 'once more to stop at once');
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130 });
    expect(checkpoints('twice')).toEqual(['checkpoints/step-00000002']);
    expect(readRecords(join(cwd, 'twice/metrics.jsonl')).map(({ step }) => step)).toEqual([1, 2]);
  });
});
