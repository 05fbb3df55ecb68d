import type { MetricsRecord, Tracker } from './contracts.ts';

/** Where the lines go: a terminal (`isTTY`) or anything else that takes text. */
export interface ConsoleStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Width of the terminal in characters. */
  readonly columns?: number;
}

/** One number of the line. A record without the metric leaves the last value standing. */
export interface ConsoleField {
  readonly metric: string;
  readonly label: string;
  /** `percent` shows 0.5 as 50 %; `rate` shows 12345 as 12.3k. */
  readonly format?: 'number' | 'percent' | 'rate';
}

export interface ConsoleOptions {
  readonly stream: ConsoleStream;
  /** Steps of the whole run, for the time left. */
  readonly totalSteps: number;
  readonly fields: readonly ConsoleField[];
  /** Plain lines come when both have passed since the last one; a terminal's line changes with every record. */
  readonly intervalSteps?: number;
  readonly intervalMs?: number;
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
}

const CLEAR_LINE = '\r\u001b[2K';

/** One live line on a terminal, plain lines elsewhere. */
export function consoleTracker(options: ConsoleOptions): Tracker {
  const { stream, totalSteps, fields, intervalSteps = 1, intervalMs = 0, now = () => performance.now() } = options;
  const latest = new Map<string, number>();
  let first: { readonly done: number; readonly at: number } | undefined;
  let printed: { readonly done: number; readonly at: number } | undefined;
  let done = 0;
  let line = '';
  let pending = false;

  const render = (at: number) => {
    const width = String(totalSteps).length;
    const values = fields
      .filter(({ metric }) => latest.has(metric))
      .map(({ metric, label, format }) => `${label} ${formatMetric(latest.get(metric)!, format)}`);
    const rate = first && done > first.done ? (at - first.at) / (done - first.done) : undefined;
    const left = rate === undefined || done >= totalSteps ? [] : [`${formatTime(rate * (totalSteps - done))} left`];
    return [`step ${String(done).padStart(width)}/${totalSteps}`, ...values, ...left].join('  ');
  };
  // One character is left free: a full line would wrap and could not be cleared.
  const live = () => CLEAR_LINE + line.slice(0, Math.max(1, (stream.columns ?? 80) - 1));
  const show = (at: number) => {
    stream.write(stream.isTTY ? live() : `${line}\n`);
    printed = { done, at };
    pending = false;
  };

  return {
    name: 'console',
    log: ({ step, metrics }: MetricsRecord) => {
      const at = now();
      for (const { metric } of fields) if (metrics[metric] !== undefined) latest.set(metric, metrics[metric]);
      done = step;
      first ??= { done, at };
      line = render(at);
      pending = true;
      const due = !printed || (done - printed.done >= intervalSteps && at - printed.at >= intervalMs);
      if (stream.isTTY || due) show(at);
    },
    text: message => {
      stream.write(stream.isTTY && line ? `${CLEAR_LINE}${message}\n${live()}` : `${message}\n`);
    },
    close: () => {
      if (pending) show(now());
      if (stream.isTTY && line) stream.write('\n');
    },
  };
}

export function formatMetric(value: number, format: ConsoleField['format'] = 'number'): string {
  if (!Number.isFinite(value)) return String(value);
  if (format === 'percent') return `${(100 * value).toFixed(0)} %`;
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
