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
