/** Curves of many experiments side by side: one small panel for each, in rows and columns with names. */
export interface Panels {
  readonly title: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  /** Values in [0, 1] by step, one list for each run of the experiment. */
  readonly runs: (row: number, column: number) => readonly (readonly number[])[];
}

const PANEL = { width: 104, height: 56, gap: 10 };
const MARGIN = { left: 136, top: 64, right: 16, bottom: 28 };

export function panelsSvg({ title, rows, columns, runs }: Panels): string {
  const left = (column: number) => MARGIN.left + column * (PANEL.width + PANEL.gap);
  const top = (row: number) => MARGIN.top + row * (PANEL.height + PANEL.gap);
  const width = left(columns.length) - PANEL.gap + MARGIN.right;
  const height = top(rows.length) - PANEL.gap + MARGIN.bottom;
  const panel = (row: number, column: number) => {
    const [x, y] = [left(column), top(row)];
    const frame = `<rect x="${x}" y="${y}" width="${PANEL.width}" height="${PANEL.height}" fill="none" stroke="#e3e3e3"/>`;
    return [frame, ...runs(row, column).map(values => curve(values, x, y))];
  };
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="#333333">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(MARGIN.left, 24, title, 'start" font-size="15'),
    ...columns.map((name, column) => text(left(column) + PANEL.width / 2, MARGIN.top - 10, name, 'middle')),
    ...rows.map((name, row) => text(MARGIN.left - 10, top(row) + PANEL.height / 2 + 4, name, 'end')),
    ...rows.flatMap((_, row) => columns.flatMap((_, column) => panel(row, column))),
    text(width - MARGIN.right, height - 8, 'each panel: mean reward, 0 to 1, by step; one line a seed', 'end'),
    '</svg>\n',
  ].join('\n');
}

function curve(values: readonly number[], x: number, y: number): string {
  const last = Math.max(1, values.length - 1);
  const points = values.map(
    (value, i) => `${(x + (i / last) * PANEL.width).toFixed(1)},${(y + (1 - value) * PANEL.height).toFixed(1)}`,
  );
  return `<polyline points="${points.join(' ')}" fill="none" stroke="#1f5fa8" stroke-width="1.2" stroke-linejoin="round"/>`;
}

/** Names are those of estimators and losses: nothing in them needs escaping. */
function text(x: number, y: number, content: string, anchor: string): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${content}</text>`;
}
