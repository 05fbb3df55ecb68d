import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { beforeAll, expect, it } from 'vitest';
import { findDamage } from '../../src/storage/manifest.ts';
import { root, tokenloop } from '../support/process.ts';
import { smallJob } from '../support/small-job.ts';
import { below, lastingMetrics, readRecords } from '../support/workplace.ts';

/**
 * A run that is killed (SIGKILL) again and again, each time at a random one of the moments at which it changes a file:
 * lines of metrics and episodes, checkpoints being written, renamed and removed, the lock, in both threads, writes half
 * done. Continued each time, it ends as one that was never stopped. FAULTS=full kills 50 times, FAULTS=brief twice,
 * else 6 times.
 */

const KILLS = { full: 50, brief: 2 }[process.env.FAULTS ?? ''] ?? 6;
const NODE_OPTIONS = `--require ${join(root, 'tests/support/fatal-moment.cjs')}`;
const argv = (run: string) => [
  'rl',
  '--config',
  'rl.yaml',
  '--run.dir',
  run,
  '--ckpt.save_steps',
  '1',
  '--ckpt.load_enable',
];
let cwd: string;
/** Events of a whole run, by thread. */
let events: readonly (readonly [thread: 'main' | 'worker', count: number])[];

beforeAll(async () => {
  cwd = await smallJob();
  const into = join(cwd, 'events');
  expect(await tokenloop(argv('whole'), { cwd, env: { NODE_OPTIONS, EVENTS_INTO: into } })).toMatchObject({ code: 0 });
  events = (['main', 'worker'] as const).map(thread => [thread, statSync(`${into}.${thread}`).size] as const);
  for (const [, count] of events) expect(count).toBeGreaterThan(10);
});

async function expectWholeCheckpoints(run: string): Promise<void> {
  const checkpoints = join(cwd, run, 'checkpoints');
  if (!existsSync(checkpoints)) return;
  const named = readdirSync(checkpoints).filter(name => /^step-\d+$/.test(name));
  for (const name of named) expect(await findDamage(join(checkpoints, name))).toBeUndefined();
}

function expectToEqualWhole(run: string): void {
  expect(lastingMetrics(join(cwd, run))).toEqual(lastingMetrics(join(cwd, 'whole')));
  const episodes = (of: string) => readRecords(join(cwd, of, 'episodes.jsonl'));
  expect(episodes(run)).toEqual(episodes('whole'));
  const model = (of: string) => readFileSync(join(cwd, of, 'model/model.safetensors'));
  expect(model(run).equals(model('whole'))).toBe(true);
  expect(below(join(cwd, run))).toEqual(below(join(cwd, 'whole')));
}

it(
  `killed ${KILLS} times at random moments, runs end as the one that was not`,
  async () => {
    const random = xoroshiro128plus(7);
    const total = events.reduce((sum, [, count]) => sum + count, 0);
    let runs = 0;
    for (let kills = 0; kills < KILLS; ) {
      let at = uniformInt(random, 1, Math.ceil(total / 2));
      const moment = events.find(([, count]) => {
        if (at <= count) return true;
        at -= count;
        return false;
      })!;
      const run = `run ${runs}`;
      const { code, err } = await tokenloop(argv(run), { cwd, env: { NODE_OPTIONS, FATAL_AT: `${moment[0]}:${at}` } });
      expect([null, 0], err).toContain(code);
      await expectWholeCheckpoints(run);
      if (code === null) {
        kills += 1;
      } else {
        expectToEqualWhole(run);
        runs += 1;
      }
    }
    const last = `run ${runs}`;
    expect(await tokenloop(argv(last), { cwd })).toMatchObject({ code: 0 });
    expectToEqualWhole(last);
  },
  (KILLS + 4) * 20_000,
);
