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

/** What a run's recorded episodes were like, in a few lines; undefined where none was recorded. */
export function fidelityReport(episodes: readonly { readonly metrics: Readonly<Record<string, number>> }[]) {
  const recorded = episodes.filter(({ metrics }) => metrics.recorded_history_tokens !== undefined);
  if (recorded.length === 0) return undefined;
  const sum = (name: string) => recorded.reduce((total, { metrics }) => total + (metrics[name] ?? 0), 0);
  const history = sum('recorded_history_tokens');
  const replayed = sum('recorded_replayed_tokens');
  const share = history === 0 ? 100 : (100 * replayed) / history;
  const causes = CAUSES.map(cause => [cause, sum(`recorded_branch_${cause}`)] as const).filter(([, n]) => n > 0);
  const branches = causes.length === 0 ? 'none' : causes.map(([cause, n]) => `${n} ${cause}`).join(', ');
  return `${recorded.length} recorded episodes: ${share.toFixed(1)} % of ${history} tokens of history replayed as sampled; branches: ${branches}`;
}
