/** A small text table: columns as wide as their widest cell, numbers to the right. The first row is the heading. */
export function table(rows: readonly (readonly (string | number)[])[]): string {
  const cells = rows.map(row => row.map(String));
  const columns = Math.max(0, ...cells.map(row => row.length));
  const widths = Array.from({ length: columns }, (_, at) => Math.max(...cells.map(row => row[at]?.length ?? 0)));
  const toRight = widths.map((_, at) =>
    cells.slice(1).every(row => /^[-+]?[\d.]+( ?[%\w]{1,3})?$/.test(row[at] ?? '0')),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => (toRight[at] ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!)))
      .join('  ')
      .trimEnd();
  const [heading, ...body] = cells.map(line);
  const rule = widths.map(width => '-'.repeat(width)).join('  ');
  return [heading, rule, ...body].filter(text => text !== undefined).join('\n');
}
