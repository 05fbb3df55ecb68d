import type { MetricsRecord, Tracker } from './contracts.ts';
import { type LiveRegion, liveRegion, type TerminalStream } from './live-region.ts';

/** Where the lines go: a terminal (`isTTY`) or anything else that takes text. */
export interface ConsoleStream extends TerminalStream {
  readonly isTTY?: boolean | undefined;
  /** Colours may be used. */
  readonly color?: boolean | undefined;
  /** The region at the bottom of the terminal, where several share it. */
  readonly region?: LiveRegion | undefined;
}

/** One number of the line. A record without it leaves the last value standing. */
export interface ConsoleField {
  /** Name of a metric, or a function of a record's. */
  readonly metric: string | ((metrics: MetricsRecord['metrics']) => number | undefined);
  readonly label: string;
  /** `percent` shows 0.5 as 50 %; `rate` shows 12345 as 12.3k; `count` shows 3 as 3. */
  readonly format?: 'number' | 'percent' | 'rate' | 'count';
}

export interface ConsoleOptions {
  readonly stream: ConsoleStream;
  /** Steps of the whole run, for the time left. */
  readonly totalSteps: number;
  /** What is counted; `step` when not given. */
  readonly unit?: string;
  readonly fields: readonly ConsoleField[];
  /** Plain lines come when both have passed since the last one; a terminal shows every record. */
  readonly intervalSteps?: number;
  readonly intervalMs?: number;
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
}

/** One live region on a terminal, plain lines elsewhere. */
export function consoleTracker(options: ConsoleOptions): Tracker {
  const { stream, totalSteps, fields, unit = 'step', now = () => performance.now() } = options;
  const { intervalSteps = 1, intervalMs = 0 } = options;
  const region = stream.region ?? (stream.isTTY ? liveRegion(stream) : undefined);
  const latest = new Map<ConsoleField, number>();
  let first: { readonly done: number; readonly at: number } | undefined;
  let printed: { readonly done: number; readonly at: number } | undefined;
  let done = 0;
  let pieces: readonly string[] = [];
  let pending = false;

  const render = (at: number) => {
    const width = String(totalSteps).length;
    const values = fields.flatMap(field => {
      const value = latest.get(field);
      return value === undefined ? [] : `${field.label} ${formatMetric(value, field.format)}`;
    });
    const rate = first && done > first.done ? (at - first.at) / (done - first.done) : undefined;
    const left = rate === undefined || done >= totalSteps ? [] : [`${formatTime(rate * (totalSteps - done))} left`];
    return [`${unit} ${String(done).padStart(width)}/${totalSteps}`, ...values, ...left];
  };
  const print = (at: number) => {
    stream.write(`${pieces.join('  ')}\n`);
    printed = { done, at };
    pending = false;
  };

  return {
    name: 'console',
    log: ({ step, metrics }) => {
      const at = now();
      for (const field of fields) {
        const value = typeof field.metric === 'string' ? metrics[field.metric] : field.metric(metrics);
        if (value !== undefined) latest.set(field, value);
      }
      done = step;
      first ??= { done, at };
      pieces = render(at);
      pending = true;
      const due = !printed || (done - printed.done >= intervalSteps && at - printed.at >= intervalMs);
      if (region) region.show(pieces);
      else if (due) print(at);
    },
    text: message => {
      if (region) region.above(`${message}\n`);
      else stream.write(`${message}\n`);
    },
    close: () => {
      if (region) region.end();
      else if (pending) print(now());
    },
  };
}

export function formatMetric(value: number, format: ConsoleField['format'] = 'number'): string {
  if (!Number.isFinite(value)) return String(value);
  if (format === 'percent') return `${(100 * value).toFixed(0)} %`;
  if (format === 'count') return String(value);
  if (format === 'rate') return value >= 1000 ? `${(value / 1000).toFixed(1)}k` : value.toFixed(0);
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(1);
  return value.toFixed(3);
}

/** Milliseconds as `42 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatTime(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
