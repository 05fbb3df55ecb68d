/** Which evaluation counts as the best, and what it was. */
export interface BestOptions {
  /** Name of a metric of evaluations; the first, by name, that ends in pass1 when not given. */
  readonly metric?: string | undefined;
  /** `max` when not given. */
  readonly mode?: 'max' | 'min' | undefined;
}

export interface Best {
  readonly metric: string;
  readonly value: number;
  /** Steps done when it was measured. */
  readonly step: number;
}

/**
 * The better of the best so far and an evaluation; an equal one is no better, and neither is one that is not a finite
 * number. Throws when the evaluation does not have the metric that was asked for.
 */
export function betterOf(
  best: Best | undefined,
  metrics: Readonly<Record<string, number>>,
  step: number,
  { metric, mode = 'max' }: BestOptions,
): Best | undefined {
  const names = Object.keys(metrics).filter(name => name.startsWith('eval'));
  const name = metric ?? best?.metric ?? names.filter(one => one.endsWith('/pass1')).sort()[0];
  if (name === undefined) return best;
  const value = metrics[name];
  if (value === undefined) {
    throw new Error(
      `ckpt.best_metric_key is ${name}, and an evaluation has ${names.sort().join(', ')}: name one of them`,
    );
  }
  if (!Number.isFinite(value)) return best;
  const isBetter = best === undefined || (mode === 'max' ? value > best.value : value < best.value);
  return isBetter ? { metric: name, value, step } : best;
}
