import { describe, expect, it } from 'vitest';
import { consoleTracker } from '../tracking/console.ts';
import { type Env, terminal } from './terminal.ts';

function setup(env: Env, isTTY = true) {
  const written: string[] = [];
  const stream = (mark: string) => ({ write: (text: string) => written.push(mark + text), isTTY, columns: 80 });
  const { stdout, stderr } = terminal({ stdout: stream(''), stderr: stream('!') }, env);
  const tracker = consoleTracker({ stream: stdout, totalSteps: 2, fields: [] });
  return { written, stdout, stderr, tracker };
}

describe('terminal', () => {
  it('puts what both outputs write above the region', () => {
    const { written, stdout, stderr, tracker } = setup({});
    tracker.log({ step: 1, metrics: {} });
    stderr.write('interrupted\n');
    stdout.write('report\n');
    tracker.close();
    const cleared = '\r\u001b[J';
    expect(written).toEqual(['step 1/2', cleared, '!interrupted\n', 'step 1/2', cleared, 'report\n', 'step 1/2', '\n']);
    expect(stdout.color).toBe(true);
  });

  it.each<[string, Env, boolean, { live: boolean; color: boolean }]>([
    ['a pipe', {}, false, { live: false, color: false }],
    ['CI=1', { CI: '1' }, true, { live: false, color: false }],
    ['CI=false', { CI: 'false' }, true, { live: true, color: true }],
    ['TERM=dumb', { TERM: 'dumb' }, true, { live: false, color: false }],
    ['NO_COLOR=1', { NO_COLOR: '1' }, true, { live: true, color: false }],
    ['an empty NO_COLOR', { NO_COLOR: '' }, true, { live: true, color: true }],
  ])('%s', (_, env, isTTY, { live, color }) => {
    const { written, stdout, tracker } = setup(env, isTTY);
    tracker.log({ step: 1, metrics: {} });
    tracker.log({ step: 2, metrics: {} });
    tracker.close();
    expect(written.join('').includes('\u001b')).toBe(live);
    expect(stdout.color).toBe(color);
    if (!live) expect(written).toEqual(['step 1/2\n', 'step 2/2\n']);
  });
});
