import type { Values } from '../options/option.ts';
import { type ConsoleField, type ConsoleStream, consoleTracker } from '../tracking/console.ts';
import type { Tracker } from '../tracking/contracts.ts';
import { metricsLine } from '../tracking/jsonl.ts';
import type { progressOptions } from '../tracking/options.ts';

/** What a command shows of its work, as `quiet` and `json` ask for it. */
export interface Display {
  /** Shows the numbers of each step. */
  readonly tracker: Tracker;
  /** News, for whoever watches. */
  say(message: string): void;
  /** What the user should know, watching or not. */
  warn(message: string): void;
  /** What is told at the end; its last line is the result. */
  report(text: string): void;
}

/** Failures among a step's episodes. */
const FAILED: ConsoleField = {
  metric: ({ 'rollout/failed': failed, 'rollout/num_samples': others }) =>
    failed === undefined || others === undefined || failed + others === 0 ? undefined : failed / (failed + others),
  label: 'failed',
  format: 'percent',
};

/** Numbers of a training step that every run shows, where it has them; `own` stand behind the reward. */
export function rolloutFields(own: readonly ConsoleField[]): ConsoleField[] {
  return [
    { metric: 'rollout/reward_mean', label: 'reward' },
    ...own,
    { metric: 'timing/tokens_per_second', label: 'tokens/s', format: 'rate' },
    { metric: 'rollout/queue_depth', label: 'queue', format: 'count' },
    { metric: 'rollout/staleness_mean', label: 'staleness' },
    FAILED,
  ];
}

export function displayOf(
  values: Values<typeof progressOptions>,
  { stdout, stderr }: { readonly stdout: ConsoleStream; readonly stderr: ConsoleStream },
  progress: { readonly totalSteps: number; readonly unit?: string; readonly fields: readonly ConsoleField[] },
): Display {
  const warn = (message: string) => void stderr.write(`${message}\n`);
  const silent = () => undefined;
  if (values.json) {
    const told = values.quiet ? silent : warn;
    const log: Tracker['log'] = record => void stdout.write(`${metricsLine(record)}\n`);
    return { tracker: { name: 'json', log, close: silent }, say: told, warn, report: told };
  }
  if (values.quiet) {
    const report = (text: string) => void stdout.write(`${text.slice(text.lastIndexOf('\n') + 1)}\n`);
    return { tracker: { name: 'quiet', log: silent, close: silent }, say: silent, warn, report };
  }
  const tracker = consoleTracker({
    stream: stdout,
    ...progress,
    intervalSteps: values['logger.logging_steps'],
    intervalMs: 1000 * values['logger.console_interval'],
  });
  const say = (message: string) => void tracker.text?.(message);
  return { tracker, say, warn: say, report: text => void stdout.write(`${text}\n`) };
}
