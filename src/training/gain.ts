import { pairedBootstrap } from './bootstrap.ts';

/** For each source and task id the share of attempts that solved the task. */
export type TaskScores = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** What the policy scored before training: later evaluations are compared with it, task by task. */
export class Baseline {
  #scores: TaskScores | undefined;

  /** The scores, once there are some: what a checkpoint keeps. */
  get state(): TaskScores | undefined {
    return this.#scores;
  }

  restore(scores: TaskScores): void {
    this.#scores = scores;
  }

  /**
   * Metrics of how far an evaluation is from the baseline: by source `pass1_gain` with the ends of its 95 % confidence
   * interval and its p-value. The first evaluation is the baseline and has none.
   */
  compare(scores: TaskScores): Record<string, Record<string, number>> {
    if (this.#scores === undefined) {
      this.#scores = scores;
      return {};
    }
    const metrics: Record<string, Record<string, number>> = {};
    for (const [source, tasks] of Object.entries(scores)) {
      const before = this.#scores[source] ?? {};
      const paired = Object.keys(tasks).filter(id => before[id] !== undefined);
      if (paired.length === 0) continue;
      const { difference, low, high, p } = pairedBootstrap(
        paired.map(id => before[id]!),
        paired.map(id => tasks[id]!),
      );
      metrics[source] = { pass1_gain: difference, pass1_gain_low: low, pass1_gain_high: high, pass1_gain_p: p };
    }
    return metrics;
  }
}
