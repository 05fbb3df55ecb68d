import { CAUSES, type Counts } from './conversation-tree.ts';

/**
 * How faithfully an episode of a recorded agent is trained on, as its metrics: `recorded_history_tokens` (tokens of
 * assistant messages that clients sent back, over all requests), `recorded_replayed_tokens` (those of them that stayed the
 * ids that were sampled), `recorded_replayed` (their share; 1 where nothing was sent back), `recorded_branches`, and
 * `recorded_branch_<cause>` for every cause. Whether the learner gives the replayed tokens the log-probs that were
 * recorded is measured where it runs: `train/mismatch_max`.
 */
export function fidelityMetrics({ history, replayed, causes }: Counts): Record<string, number> {
  const byCause = CAUSES.map(cause => [`recorded_branch_${cause}`, causes.get(cause) ?? 0] as const);
  return {
    recorded_history_tokens: history,
    recorded_replayed_tokens: replayed,
    recorded_replayed: history === 0 ? 1 : replayed / history,
    recorded_branches: byCause.reduce((sum, [, count]) => sum + count, 0),
    ...Object.fromEntries(byCause),
  };
}

type Measured = { readonly metrics: Readonly<Record<string, number>> };

const UNMET = {
  recorded_choice_unmet: 'without the call that was required',
  recorded_format_unmet: 'not in the form that was asked for',
  recorded_overridden: 'sampled as the run does, not as the request says',
} as const;

/** What a run's recorded episodes were like, counted as they come. */
export class FidelityReport {
  #episodes = 0;
  #mismatch = Number.NaN;
  readonly #sums = new Map<string, number>();

  add(episodes: Iterable<Measured>): void {
    for (const { metrics } of episodes) {
      if (metrics.recorded_history_tokens === undefined) continue;
      this.#episodes += 1;
      for (const [name, value] of Object.entries(metrics)) {
        if (name.startsWith('recorded_')) this.#sums.set(name, this.#sum(name) + value);
      }
    }
  }

  /** Largest difference between log-probs that were recorded and those that the learner gives the same tokens, in nats. */
  addMismatch(nats: number | undefined): void {
    if (nats !== undefined) this.#mismatch = Math.max(Number.isNaN(this.#mismatch) ? 0 : this.#mismatch, nats);
  }

  /** A few lines; undefined where nothing was recorded. */
  describe(): string | undefined {
    if (this.#episodes === 0) return undefined;
    const history = this.#sum('recorded_history_tokens');
    const share = history === 0 ? 100 : (100 * this.#sum('recorded_replayed_tokens')) / history;
    const causes = CAUSES.map(cause => [cause, this.#sum(`recorded_branch_${cause}`)] as const).filter(
      ([, n]) => n > 0,
    );
    const branches = causes.length === 0 ? 'none' : causes.map(([cause, n]) => `${n} ${cause}`).join(', ');
    const unmet = Object.entries(UNMET).flatMap(([name, what]) => {
      const count = this.#sum(name);
      return count > 0 ? [`${count} answers ${what}`] : [];
    });
    return [
      `${this.#episodes} recorded episodes: ${share.toFixed(1)} % of ${history} tokens of history replayed as sampled`,
      ...(Number.isNaN(this.#mismatch)
        ? []
        : [`recorded and replayed log-probs differ by at most ${this.#mismatch.toPrecision(2)} nats`]),
      `branches: ${branches}`,
      ...unmet,
    ].join('; ');
  }

  #sum(name: string): number {
    return this.#sums.get(name) ?? 0;
  }
}
