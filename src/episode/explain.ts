import type { z } from 'zod';

/** One line that says where a value breaks its schema, how, and what was there: `reward: expected number, got NaN`. */
export function explain(error: z.ZodError, value: unknown): string {
  return error.issues
    .map(issue => {
      const where = issue.path.map(key => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
      const what = issue.message.replace(/^Invalid input: /, '').replace(/, received .*$/, '');
      return `${where === '' ? '' : `${where.replace(/^\./, '')}: `}${what}, got ${preview(at(value, issue.path))}`;
    })
    .join('; ');
}

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value);
}

/** A value for an error message: short, and telling NaN, null and missing apart. */
export function preview(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value === 'function') return 'a function';
  let text: string;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = String(value); // cyclic, or a bigint: still worth showing
  }
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
