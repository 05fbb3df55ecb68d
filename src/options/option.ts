import type { z } from 'zod';

/**
 * One option, declared once beside the part that uses it. The flag, the key in the file, `--help`, the table in the
 * docs and the JSON schema all come from this declaration (see load.ts and describe.ts).
 */
export interface Option<T = unknown> {
  /** Validates and gives the default (`z.number().int().positive().default(8)`); durations and sizes name their unit. */
  readonly schema: z.ZodType<T>;
  readonly help: string;
  /** 'tokens', 'ms', 'steps' … */
  readonly unit?: string;
  /** Older or foreign names for the same thing (OpenRLHF's underscore flags). */
  readonly aliases?: readonly string[];
  /** A short form for the command line (`--env` for `--eval.env`). */
  readonly short?: string;
  /** Its value may stand on the command line as a bare word: the first one (0), the second one (1). */
  readonly position?: number;
  /**
   * A record that takes `key=value` words of the command line that name no option, when the option named here is given:
   * whoever reads the record refuses keys that it does not know.
   */
  readonly restOf?: string;
}

/** Dotted name → declaration: one part's share of the options. */
export type Options = Readonly<Record<string, Option>>;

/** Keeps the literal names and value types of a declaration. */
export function options<const T extends Options>(declarations: T): T {
  return declarations;
}

/** Dotted name → validated value. */
export type Values<T extends Options> = { readonly [K in keyof T]: T[K] extends Option<infer V> ? V : never };
