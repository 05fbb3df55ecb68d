/** A line chart as an SVG document: several runs of one experiment, their mean, and reference lines. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Chart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Runs of one experiment, at least one. The mean is drawn over the places that all of them have. */
  readonly runs: readonly (readonly Point[])[];
  /** What `runs` are, where there are other experiments; shown with the names of those. */
  readonly label?: string;
  /** Other experiments in the same plot, at most two. */
  readonly others?: readonly { readonly label: string; readonly runs: readonly (readonly Point[])[] }[];
  /** Horizontal dashed lines to compare with. */
  readonly references?: readonly { readonly label: string; readonly y: number }[];
  /** 0 to 1 when not given. */
  readonly range?: readonly [low: number, high: number];
}

const SIZE = { width: 640, height: 360 };
const PLOT = { left: 64, right: 616, top: 48, bottom: 304 };
const COLOR = { ink: '#333333', grid: '#e3e3e3', reference: '#b3541e' };
/** Of the experiments in their order: each run, and their mean. */
const EXPERIMENTS = [
  { run: '#9db8d9', mean: '#1f5fa8' },
  { run: '#e2b8a0', mean: '#a8481f' },
  { run: '#b5cfae', mean: '#3f7a33' },
];

/** @throws Error when there is no run, or a run without points. */
export function chartSvg(chart: Chart): string {
  const { title, xLabel, yLabel, references = [], range = [0, 1] } = chart;
  const experiments = [{ label: chart.label, runs: chart.runs }, ...(chart.others ?? [])];
  const all = experiments.flatMap(({ runs }) => runs);
  if (experiments.some(({ runs }) => runs.length === 0) || all.some(run => run.length === 0)) {
    throw new Error(`chart '${title}': a run has no points`);
  }
  if (experiments.length > EXPERIMENTS.length) throw new Error(`chart '${title}': ${experiments.length} experiments`);
  const xs = all.flat().map(({ x }) => x);
  const x = scale([Math.min(...xs), Math.max(...xs)], [PLOT.left, PLOT.right]);
  const y = scale(range, [PLOT.bottom, PLOT.top]);
  const line = (points: readonly Point[]) => points.map(point => `${round(x(point.x))},${round(y(point.y))}`).join(' ');
  const middle = round((PLOT.left + PLOT.right) / 2);
  const centre = round((PLOT.top + PLOT.bottom) / 2);

  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${SIZE.height}" font-family="sans-serif" font-size="13" fill="${COLOR.ink}">`,
    `<rect width="${SIZE.width}" height="${SIZE.height}" fill="#ffffff"/>`,
    text(middle, 26, title, 'text-anchor="middle" font-size="15"'),
    ...ticks(range).flatMap(value => {
      const at = round(y(value));
      const grid = `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${at}" y2="${at}" stroke="${COLOR.grid}"/>`;
      return [grid, text(PLOT.left - 8, at + 4, String(value), 'text-anchor="end"')];
    }),
    ...ticks([Math.min(...xs), Math.max(...xs)]).map(value =>
      text(round(x(value)), PLOT.bottom + 20, String(value), 'text-anchor="middle"'),
    ),
    text(middle, PLOT.bottom + 42, xLabel, 'text-anchor="middle"'),
    text(20, centre, yLabel, `text-anchor="middle" transform="rotate(-90 20 ${centre})"`),
    ...references.flatMap(({ label, y: value }) => {
      const at = round(y(value));
      const dashes = `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${at}" y2="${at}" stroke="${COLOR.reference}" stroke-dasharray="6 4"/>`;
      return [dashes, text(PLOT.right, at - 6, label, `text-anchor="end" fill="${COLOR.reference}"`)];
    }),
    ...experiments.flatMap(({ runs }, i) => runs.map(run => polyline(line(run), EXPERIMENTS[i]!.run, 1.5))),
    ...experiments.map(({ runs }, i) => polyline(line(mean(runs)), EXPERIMENTS[i]!.mean, 2.5)),
    ...experiments.flatMap(({ label }, i) =>
      label === undefined
        ? []
        : [
            text(
              PLOT.right,
              PLOT.bottom - 60 - 18 * (experiments.length - 1 - i),
              label,
              `text-anchor="end" fill="${EXPERIMENTS[i]!.mean}"`,
            ),
          ],
    ),
    '</svg>\n',
  ].join('\n');
}

/** Mean over the runs at each x that all of them have. */
export function mean(runs: readonly (readonly Point[])[]): Point[] {
  const sums = new Map<number, { total: number; count: number }>();
  for (const { x, y } of runs.flat()) {
    const { total, count } = sums.get(x) ?? { total: 0, count: 0 };
    sums.set(x, { total: total + y, count: count + 1 });
  }
  return [...sums]
    .filter(([, { count }]) => count === runs.length)
    .map(([x, { total, count }]) => ({ x, y: total / count }))
    .sort((a, b) => a.x - b.x);
}

/** Round numbers inside the range, at most seven: multiples of 1, 2 or 5 times a power of ten. */
export function ticks([low, high]: readonly [number, number]): number[] {
  if (!(high > low)) return [low];
  const power = 10 ** Math.floor(Math.log10((high - low) / 6));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(size => (high - low) / size <= 6)!;
  const count = Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
  return Array.from({ length: count }, (_, i) => Number(((Math.ceil(low / step - 1e-9) + i) * step).toPrecision(12)));
}

function scale(from: readonly [number, number], to: readonly [number, number]): (value: number) => number {
  const span = from[1] - from[0] || 1;
  return value => to[0] + ((value - from[0]) / span) * (to[1] - to[0]);
}

function polyline(points: string, color: string, width: number): string {
  return `<polyline points="${points}" fill="none" stroke="${color}" stroke-width="${width}" stroke-linejoin="round"/>`;
}

function text(x: number, y: number, content: string, attributes: string): string {
  const escaped = content.replace(/[&<>]/g, char => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[char]!);
  return `<text x="${x}" y="${y}" ${attributes}>${escaped}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
