import { table } from './table.ts';

/** Metrics by their flat names. */
export type Metrics = Readonly<Record<string, number>>;

/** A number that the user asked to be shown: `label=metric` of eval.report. */
export interface Reported {
  readonly label: string;
  /** Name below `eval/<source>/` and `rollout/`. */
  readonly metric: string;
}

export function reported(report: readonly string[]): Reported[] {
  return report.map(entry => {
    const at = entry.indexOf('=');
    return { label: entry.slice(0, at).trim(), metric: entry.slice(at + 1).trim() };
  });
}

/** Sources of an evaluation, in the order in which they occur. */
function sourcesOf(metrics: Metrics): string[] {
  return Object.keys(metrics).flatMap(name => /^eval\/(.+)\/pass1$/.exec(name)?.[1] ?? []);
}

/** The reported numbers of each source, before and after, as a table. */
export function comparison(report: readonly Reported[], before: Metrics, after: Metrics): string {
  const sources = sourcesOf(after);
  const rows = sources.flatMap(source =>
    report.map(({ label, metric }) => {
      const [from, to] = [before, after].map(metrics => metrics[`eval/${source}/${metric}`]);
      const change = from === undefined || to === undefined ? '' : `${to >= from ? '+' : ''}${show(to - from)}`;
      return [sources.length > 1 ? `${source}: ${label}` : label, show(from), show(to), change];
    }),
  );
  return table([['held-out', 'before', 'after', 'change'], ...rows]);
}

/** All numbers of an evaluation: a row for each metric, a column for each source. */
export function evaluationTable(metrics: Metrics): string {
  const sources = sourcesOf(metrics);
  const names = Object.keys(metrics).flatMap(name => {
    const source = sources.find(one => name.startsWith(`eval/${one}/`));
    return source === undefined ? [] : [name.slice(`eval/${source}/`.length)];
  });
  const rows = [...new Set(names)].map(name => [name, ...sources.map(one => show(metrics[`eval/${one}/${name}`]))]);
  return table([['metric', ...sources], ...rows]);
}

/** One line for the live output. */
export function describeEvaluation(step: number, report: readonly Reported[], metrics: Metrics): string {
  const when = step === 0 ? 'before training' : `after ${step} steps`;
  return `held-out ${when}: ${report.map(one => `${one.label} ${show(overall(one, metrics))}`).join(', ')}`;
}

/** The mean of a reported number over the sources that have it. */
export function overall({ metric }: Reported, metrics: Metrics): number {
  const values = sourcesOf(metrics).flatMap(source => metrics[`eval/${source}/${metric}`] ?? []);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The last line of a command, for machines. */
export function resultLine(
  numbers: readonly { readonly label: string; readonly values: readonly number[] }[],
  { seconds, seed }: { readonly seconds: number; readonly seed: number },
): string {
  const parts = numbers.map(({ label, values }) => `${label} ${values.map(show).join(' -> ')}`);
  return `result: ${[...parts, `${seconds.toFixed(1)} s`, `seed ${seed}`].join(', ')}`;
}

function show(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '-' : value.toFixed(3);
}
