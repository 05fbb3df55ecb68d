import { type Episode, type Leaves, leaves, type Outcome, path, type Step } from './episode.ts';

/** Codes of `Trajectory.sources`. */
export const SOURCE = { prompt: 0, policy: 1, environment: 2 } as const;

/** A step of a trajectory: its tokens are [start, end) of the trajectory. */
export interface TrajectoryStep extends Step {
  readonly start: number;
  readonly end: number;
}

/** One root-to-leaf path of an episode, flattened. All per-token arrays have the length T of `tokens`. */
export interface Trajectory {
  readonly episode: string;
  readonly task: string;
  readonly group: string;
  /** Index of the episode inside its group. */
  readonly sample: number;
  /** Id of the leaf segment. */
  readonly leaf: number;
  /** [T] token ids. */
  readonly tokens: Int32Array;
  /** [T] codes of SOURCE. */
  readonly sources: Uint8Array;
  /** [T] behaviour log-probabilities; NaN where the policy did not sample. */
  readonly logprobs: Float32Array;
  /** [T] policy versions; −1 where the policy did not sample. */
  readonly versions: Int32Array;
  /** [T] number of leaves that share the token (1 in a chain). */
  readonly shared: Int32Array;
  readonly steps: readonly TrajectoryStep[];
  /** What this row and the other rows of its episode are to each other. */
  readonly leaves: Leaves;
  readonly outcome: Outcome;
  readonly score: number;
}

/** One trajectory for each leaf of the episode's tree, in the order of the leaves. */
export function toTrajectories(episode: Episode): Trajectory[] {
  const { segments } = episode;
  const stepOf = new Map(episode.steps.map(step => [step.segment, step]));
  const paths = leaves(segments).map(leaf => path(segments, leaf));
  const leafCount = new Int32Array(segments.length);
  for (const ids of paths) for (const id of ids) leafCount[id]! += 1;

  return paths.map(ids => {
    const length = ids.reduce((sum, id) => sum + segments[id]!.tokens.length, 0);
    const trajectory = {
      episode: episode.id,
      task: episode.task.id,
      group: episode.group,
      sample: episode.sample,
      leaf: ids.at(-1)!,
      tokens: new Int32Array(length),
      sources: new Uint8Array(length),
      logprobs: new Float32Array(length).fill(Number.NaN),
      versions: new Int32Array(length).fill(-1),
      shared: new Int32Array(length),
      steps: [] as TrajectoryStep[],
      leaves: episode.leaves ?? 'parts',
      outcome: episode.outcome,
      score: episode.score,
    };
    let start = 0;
    for (const id of ids) {
      const segment = segments[id]!;
      const end = start + segment.tokens.length;
      trajectory.tokens.set(segment.tokens, start);
      trajectory.sources.fill(SOURCE[segment.source], start, end);
      trajectory.shared.fill(leafCount[id]!, start, end);
      if (segment.source === 'policy') {
        trajectory.logprobs.set(segment.logprobs, start);
        trajectory.versions.set(segment.versions, start);
      }
      const step = stepOf.get(id);
      // Not a spread: V8 gives what it makes a hidden class of its own each time, and every later read of steps is slow.
      if (step !== undefined) trajectory.steps.push(Object.assign({ start, end }, step));
      start = end;
    }
    return trajectory;
  });
}

/** Number of tokens the policy sampled. */
export function policyTokenCount(trajectory: Pick<Trajectory, 'sources'>): number {
  return trajectory.sources.reduce((count, source) => count + (source === SOURCE.policy ? 1 : 0), 0);
}
