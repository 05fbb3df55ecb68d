/** One thing that a contract demands, for any test runner. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<void>;
  /** Why this implementation cannot be checked: show it instead of running. */
  readonly skip?: string;
}

/** The check, skipped for the first of these reasons that is given. */
export function checkUnless(reasons: readonly (string | undefined)[], name: string, run: () => Promise<void>): Check {
  const skip = reasons.find(reason => reason !== undefined);
  return skip === undefined ? { name, run } : { name, run, skip };
}

/** What declares a test: `it` or `test` of vitest, node:test, Jest, Mocha. */
export interface Declare {
  (name: string, run: () => Promise<void>): unknown;
  skip(name: string, run: () => Promise<void>): unknown;
}

/** Makes a test of each check. */
export function declareChecks(checks: readonly Check[], it: Declare): void {
  for (const { name, run, skip } of checks) {
    if (skip === undefined) it(name, run);
    else it.skip(`${name}: ${skip}`, run);
  }
}

export interface CheckReport {
  readonly passed: readonly string[];
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
}

/** Runs the checks one after the other, without a test runner. It does not reject: what failed is in the report. */
export async function runChecks(checks: readonly Check[]): Promise<CheckReport> {
  const passed: string[] = [];
  const failed: { name: string; error: unknown }[] = [];
  const skipped: { name: string; reason: string }[] = [];
  for (const { name, run, skip } of checks) {
    if (skip !== undefined) {
      skipped.push({ name, reason: skip });
      continue;
    }
    try {
      await run();
      passed.push(name);
    } catch (error) {
      failed.push({ name, error });
    }
  }
  return { passed, failed, skipped };
}
