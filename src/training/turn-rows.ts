import { SOURCE, type Trajectory, type TrajectoryStep } from '../episode/trajectory.ts';

/**
 * Multi-turn episodes as single-turn rows: one row for each turn, which holds the context the turn was really sampled
 * in and predicts the tokens of that turn alone. A turn that several leaves of an episode share becomes one row, so no
 * token is trained on twice. The rows of an episode still are one attempt to estimators and aggregation, so credit and
 * weights are those of the episode; what changes is the sequence that sequence-level losses and corrections see.
 */
export function turnRows(trajectories: readonly Trajectory[]): Trajectory[] {
  const searched = trajectories.find(({ leaves }) => leaves === 'alternatives');
  if (searched !== undefined) {
    throw new Error(
      `episode '${searched.episode}' comes from a search: its leaves are whole attempts that share turns, and cannot be cut into one row a turn; leave train.turn_rows_enable out`,
    );
  }
  const seen = new Set<string>();
  const first = (trajectory: Trajectory, step: TrajectoryStep): boolean => {
    const key = `${step.segment} ${trajectory.episode}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  };
  return trajectories.flatMap(trajectory => {
    const rows: Trajectory[] = [];
    let from = 0;
    let steps: TrajectoryStep[] = [];
    const close = (to: number) => {
      if (steps.length > 0 || sampledIn(trajectory, from, to)) rows.push(row(trajectory, from, to, steps));
      [from, steps] = [to, []];
    };
    for (const step of trajectory.steps) {
      const before = steps.at(-1)?.end ?? from;
      if (!first(trajectory, step)) {
        [from, steps] = [step.end, []];
        continue;
      }
      // A turn without tokens has no row of its own: its reward goes with the tokens beside it.
      if (sampledIn(trajectory, from, before) && sampledIn(trajectory, before, step.end)) close(before);
      steps.push(step);
    }
    const end = steps.at(-1)?.end ?? from;
    if (sampledIn(trajectory, end, trajectory.tokens.length)) {
      if (sampledIn(trajectory, from, end)) close(end);
      close(trajectory.tokens.length);
    } else close(end);
    return rows;
  });
}

function sampledIn({ sources }: Trajectory, from: number, to: number): boolean {
  return sources.subarray(from, to).includes(SOURCE.policy);
}

/** The first `to` tokens, of which those before `from` were fed, as far as this row is concerned. */
function row(trajectory: Trajectory, from: number, to: number, steps: readonly TrajectoryStep[]): Trajectory {
  const sources = trajectory.sources.slice(0, to);
  for (let t = 0; t < from; t++) if (sources[t] === SOURCE.policy) sources[t] = SOURCE.environment;
  return {
    ...trajectory,
    leaf: steps.at(-1)?.segment ?? trajectory.leaf,
    tokens: trajectory.tokens.slice(0, to),
    sources,
    logprobs: trajectory.logprobs.slice(0, to).fill(Number.NaN, 0, from),
    versions: trajectory.versions.slice(0, to).fill(-1, 0, from),
    shared: new Int32Array(to).fill(1),
    steps,
  };
}
