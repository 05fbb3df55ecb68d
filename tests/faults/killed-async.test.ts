import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { beforeAll, expect, it } from 'vitest';
import { root, tokenloop } from '../support/process.ts';
import { EPISODES_PER_STEP, smallJob } from '../support/small-job.ts';
import { readRecords } from '../support/workplace.ts';

/**
 * Runs whose sampling and learning overlap, killed (SIGKILL) again and again at random file events: continued each
 * time, they train on every group they accepted exactly once. Which groups share a step depends on the clock, so they
 * are not compared with a run that was not stopped.
 */

const KILLS = process.env.FAULTS === 'full' ? 20 : 3;
const STEPS = 6;
const GROUPS = 3;
const QUEUE = 2;
const NODE_OPTIONS = `--require ${join(root, 'tests/support/fatal-moment.cjs')}`;
const MODES = {
  async: [],
  'partial rollout': ['--train.partial_rollout_enable'],
} as const;
let cwd: string;

const argv = (run: string, mode: keyof typeof MODES) => [
  ...['rl', '--config', 'rl.yaml', '--run.dir', run, '--ckpt.save_steps', '1', '--ckpt.load_enable'],
  ...['--train.full_determinism_enable', 'false', '--train.async_enable', '--train.async_queue_size', `${QUEUE}`],
  ...['--train.num_episodes', '9', ...MODES[mode]],
];

beforeAll(async () => {
  cwd = await smallJob();
});

/** Number of the group in the order of the data: `tasks/12` … */
const numberOf = (group: string) => Number(/(\d+)$/.exec(group)![1]);

function expectNothingLostOrRepeated(run: string): void {
  const directory = join(cwd, run);
  const steps = readRecords(join(directory, 'metrics.jsonl')).map(({ step }) => step);
  expect(steps).toEqual(Array.from({ length: STEPS }, (_, i) => i + 1));
  const episodes = readRecords(join(directory, 'episodes.jsonl')) as { id: string; group: string }[];
  expect(episodes).toHaveLength(STEPS * EPISODES_PER_STEP);
  expect(new Set(episodes.map(({ id }) => id)).size).toBe(episodes.length);
  // What was begun before the last group and is in no step was still under way when the run ended.
  const numbers = new Set(episodes.map(({ group }) => numberOf(group)));
  const last = Math.max(...numbers);
  const missing = Array.from({ length: last + 1 }, (_, i) => i).filter(number => !numbers.has(number));
  expect(missing.length).toBeLessThanOrEqual(QUEUE * GROUPS);
}

it.each(Object.keys(MODES) as (keyof typeof MODES)[])(
  `%s: killed ${KILLS} times, a run loses and repeats no accepted episode`,
  async mode => {
    const into = join(cwd, `events of ${mode}`);
    const counted = await tokenloop(argv(`whole ${mode}`, mode), { cwd, env: { NODE_OPTIONS, EVENTS_INTO: into } });
    expect(counted.code, counted.err).toBe(0);
    expectNothingLostOrRepeated(`whole ${mode}`);
    const events = (['main', 'worker'] as const).map(thread => {
      const path = `${into}.${thread}`;
      return [thread, existsSync(path) ? statSync(path).size : 0] as const;
    });
    const random = xoroshiro128plus(11);
    let runs = 0;
    for (let kills = 0; kills < KILLS; ) {
      const [thread, count] = events[uniformInt(random, 0, events.length - 1)]!;
      const at = uniformInt(random, 1, Math.max(1, Math.ceil(count / 2)));
      const run = `${mode} ${runs}`;
      const FATAL_AT = `${thread}:${at}`;
      const { code, err } = await tokenloop(argv(run, mode), { cwd, env: { NODE_OPTIONS, FATAL_AT } });
      expect([null, 0], err).toContain(code);
      if (code === null) {
        kills += 1;
      } else {
        expectNothingLostOrRepeated(run);
        runs += 1;
      }
    }
    const last = `${mode} ${runs}`;
    const ended = await tokenloop(argv(last, mode), { cwd });
    expect(ended.code, ended.err).toBe(0);
    expectNothingLostOrRepeated(last);
    expect(readFileSync(join(cwd, last, 'model/model.safetensors')).length).toBeGreaterThan(0);
  },
  KILLS * 40_000,
);
