import { expect, it } from 'vitest';
import { displayOf, rolloutFields } from './display.ts';

function show(given: { quiet?: boolean; json?: boolean }) {
  const out: string[] = [];
  const err: string[] = [];
  const streams = {
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: (text: string) => err.push(text) },
  };
  const values = { quiet: false, json: false, 'logger.logging_steps': 1, 'logger.console_interval': 0, ...given };
  const { tracker, say, warn, report } = displayOf(values, streams, { totalSteps: 2, fields: rolloutFields([]) });
  const metrics = { 'rollout/reward_mean': 0.5, 'rollout/failed': 1, 'rollout/num_samples': 3, 'train/kl': Number.NaN };
  tracker.log({ step: 1, metrics: { ...metrics, 'rollout/queue_depth': 4, 'rollout/staleness_mean': 1.5 } });
  say('held-out: 0.5');
  warn('tracker x: failed');
  tracker.close();
  report('a table\nresult: reward 0.500');
  return { out: out.join(''), err: err.join('') };
}

const LINE = 'step 1/2  reward 0.500  queue 4  staleness 1.500  failed 25 %\n';
const JSON_LINE =
  '{"step":1,"rollout/reward_mean":0.5,"rollout/failed":1,"rollout/num_samples":3,"train/kl":"NaN","rollout/queue_depth":4,"rollout/staleness_mean":1.5}\n';

it.each([
  ['nothing asked for', {}, `${LINE}held-out: 0.5\ntracker x: failed\na table\nresult: reward 0.500\n`, ''],
  ['quiet', { quiet: true }, 'result: reward 0.500\n', 'tracker x: failed\n'],
  ['json', { json: true }, JSON_LINE, 'held-out: 0.5\ntracker x: failed\na table\nresult: reward 0.500\n'],
  ['quiet and json', { quiet: true, json: true }, JSON_LINE, 'tracker x: failed\n'],
])('%s', (_, given, out, err) => {
  expect(show(given)).toEqual({ out, err });
});
