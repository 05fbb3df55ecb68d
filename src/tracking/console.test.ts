import { describe, expect, it } from 'vitest';
import { type ConsoleOptions, consoleTracker, formatMetric, formatTime } from './console.ts';

function setup(options: Partial<ConsoleOptions> & { isTTY?: boolean; columns?: number } = {}) {
  const { isTTY = false, columns = 80, ...rest } = options;
  const written: string[] = [];
  const clock = { ms: 0 };
  const tracker = consoleTracker({
    stream: { write: text => written.push(text), isTTY, columns },
    totalSteps: 10,
    fields: [
      { metric: 'train/reward', label: 'reward' },
      { metric: 'rollout/tool_use', label: 'tool use', format: 'percent' },
    ],
    now: () => clock.ms,
    ...rest,
  });
  return { written, clock, tracker };
}

describe('consoleTracker', () => {
  it('redraws its region on a terminal and leaves it there at the end', () => {
    const { written, clock, tracker } = setup({ isTTY: true });
    tracker.log({ step: 1, metrics: { 'train/reward': 0.25, 'rollout/tool_use': 0.5 } });
    clock.ms = 2000;
    tracker.log({ step: 2, metrics: { 'train/reward': 0.5 } });
    tracker.close();
    expect(written).toEqual([
      'step  1/10  reward 0.250  tool use 50 %',
      '\r\u001b[Jstep  2/10  reward 0.500  tool use 50 %  16 s left',
      '\n',
    ]);
  });

  it('puts messages above the region', () => {
    const { written, tracker } = setup({ isTTY: true });
    tracker.log({ step: 1, metrics: {} });
    tracker.text?.('saved');
    expect(written.slice(1)).toEqual(['\r\u001b[J', 'saved\n', 'step  1/10']);
  });

  it('shows what is computed from several metrics', () => {
    const share = (metrics: Readonly<Record<string, number>>) => metrics.bad! / metrics.all!;
    const { written, tracker } = setup({ fields: [{ metric: share, label: 'failed', format: 'percent' }] });
    tracker.log({ step: 1, metrics: { bad: 1, all: 4 } });
    expect(written).toEqual(['step  1/10  failed 25 %\n']);
  });

  it('writes plain lines when steps and time allow, and the last one always', () => {
    const { written, clock, tracker } = setup({ intervalSteps: 2, intervalMs: 1000 });
    for (let step = 1; step <= 6; step++) {
      clock.ms = step * 400;
      tracker.log({ step, metrics: {} });
    }
    expect(written.map(line => line.slice(0, 10))).toEqual(['step  1/10', 'step  4/10']);
    tracker.close();
    expect(written.at(-1)).toBe('step  6/10  2 s left\n');
    expect(written).toHaveLength(3);
  });

  it('does not repeat a line at close', () => {
    const { written, tracker } = setup();
    tracker.log({ step: 10, metrics: {} });
    tracker.close();
    expect(written).toEqual(['step 10/10\n']);
  });
});

it('formats numbers', () => {
  expect(formatMetric(0.5)).toBe('0.500');
  expect(formatMetric(0)).toBe('0.000');
  expect(formatMetric(1e-6)).toBe('1.0e-6');
  expect(formatMetric(Number.NaN)).toBe('NaN');
  expect(formatMetric(12345, 'rate')).toBe('12.3k');
  expect(formatMetric(999, 'rate')).toBe('999');
  expect(formatMetric(0.987, 'percent')).toBe('99 %');
  expect(formatMetric(3, 'count')).toBe('3');
});

it('formats durations', () => {
  expect(formatTime(59_400)).toBe('59 s');
  expect(formatTime(200_000)).toBe('3 min 20 s');
  expect(formatTime(7_500_000)).toBe('2 h 5 min');
});
