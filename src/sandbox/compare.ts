/**
 * Whether two JSON values are the same: numbers within 1e-9 of each other (relatively, or 1e-12 absolutely), which
 * whole numbers beyond 2^53 are, too, as JavaScript reads them; everything else exactly. The walk is as deep as
 * `expected` is.
 */
export function sameJson(actual: unknown, expected: unknown): boolean {
  if (typeof actual === 'number' && typeof expected === 'number') {
    const difference = Math.abs(actual - expected);
    if (Number.isInteger(actual) && Number.isInteger(expected)) return difference === 0;
    return difference <= Math.max(1e-12, 1e-9 * Math.abs(expected));
  }
  if (Array.isArray(actual) && Array.isArray(expected)) {
    return actual.length === expected.length && expected.every((each, i) => sameJson(actual[i], each));
  }
  if (isRecord(actual) && isRecord(expected)) {
    const keys = Object.keys(expected);
    if (Object.keys(actual).length !== keys.length) return false;
    return keys.every(key => Object.hasOwn(actual, key) && sameJson(actual[key], expected[key]));
  }
  return actual === expected;
}

/** Whether two outputs are the same but for white space at the ends of lines and lines without content at the end. */
export function sameOutput(actual: string, expected: string): boolean {
  return normal(actual) === normal(expected);
}

function normal(text: string): string {
  return text
    .split('\n')
    .map(line => line.trimEnd())
    .join('\n')
    .trimEnd();
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
