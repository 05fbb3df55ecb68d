import { z } from 'zod';
import { type PairedDifference, pairedBootstrap } from './bootstrap.ts';

/** What `tokenloop eval` writes and compares. */
export const EvaluationFile = z.object({
  format: z.literal(1),
  /** Of whom. */
  model: z.string(),
  /** Updates its weights had had, where that is known. */
  version: z.number(),
  /** How it was asked. */
  plan: z.object({ samples: z.number(), temperature: z.number(), pass_score: z.number(), seed: z.number() }),
  metrics: z.record(z.string(), z.union([z.number(), z.string()])),
  tasks: z.array(
    z.object({
      id: z.string(),
      source: z.string(),
      attempts: z.number(),
      solved: z.number(),
      failed: z.number(),
      reward: z.number().optional(),
    }),
  ),
});
export type EvaluationFile = z.infer<typeof EvaluationFile>;

/** Two evaluations on the tasks of a source that both have. */
export interface SourceComparison extends PairedDifference {
  readonly source: string;
  readonly metric: 'pass1' | 'reward';
  /** Tasks compared. */
  readonly tasks: number;
  /** Means over them. */
  readonly before: number;
  readonly after: number;
}

/**
 * Two evaluations task by task. `unpaired` counts tasks that only one of them has (for rewards also those all of whose
 * attempts failed): they are left out.
 */
export function compareEvaluations(
  before: EvaluationFile,
  after: EvaluationFile,
): { readonly sources: readonly SourceComparison[]; readonly unpaired: number } {
  const sources: SourceComparison[] = [];
  const earlier = new Map(before.tasks.map(task => [`${task.source}\n${task.id}`, task]));
  const pairs = after.tasks.flatMap(task => {
    const other = earlier.get(`${task.source}\n${task.id}`);
    return other === undefined ? [] : [{ before: other, after: task }];
  });
  for (const source of new Set(pairs.map(pair => pair.after.source))) {
    const of = pairs.filter(pair => pair.after.source === source);
    const add = (metric: SourceComparison['metric'], values: readonly (readonly [number, number])[]) => {
      if (values.length === 0) return;
      const [a, b] = [values.map(([value]) => value), values.map(([, value]) => value)];
      const mean = (list: readonly number[]) => list.reduce((sum, value) => sum + value, 0) / list.length;
      const difference = pairedBootstrap(a, b, { resamples: 10_000 });
      sources.push({ source, metric, tasks: values.length, before: mean(a), after: mean(b), ...difference });
    };
    add(
      'pass1',
      of.map(pair => [pair.before.solved / pair.before.attempts, pair.after.solved / pair.after.attempts] as const),
    );
    add(
      'reward',
      of.flatMap(({ before: { reward: a }, after: { reward: b } }) =>
        a === undefined || b === undefined ? [] : [[a, b] as const],
      ),
    );
  }
  return { sources, unpaired: before.tasks.length + after.tasks.length - 2 * pairs.length };
}
