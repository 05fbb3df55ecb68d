import type { FailureClass } from './failure.ts';
import type { Image, Task } from './task.ts';

/**
 * One attempt at a task, recorded as a tree of segments. Each segment stores only its own tokens, so storage is linear
 * in turns; a chain rollout is a tree with one leaf. `toTrajectories` (trajectory.ts) flattens it for training.
 */

export type Source = 'prompt' | 'policy' | 'environment';

interface SegmentBase {
  /** Index into `Episode.segments`. */
  readonly id: number;
  /** Id of the segment this one continues, −1 for a root. Always smaller than `id`. */
  readonly parent: number;
  /** [n] token ids, n ≥ 0, as sampled or as fed in. */
  readonly tokens: Int32Array;
  readonly images?: readonly Image[];
}

/** Tokens the policy was given: never sampled, never trained on. */
export interface FedSegment extends SegmentBase {
  readonly source: 'prompt' | 'environment';
}

/** Tokens the policy sampled. */
export interface PolicySegment extends SegmentBase {
  readonly source: 'policy';
  /** [n] natural log-probability of each token under the distribution it was sampled from. */
  readonly logprobs: Float32Array;
  /** [n] number of weight updates the policy had had when it sampled each token. */
  readonly versions: Int32Array;
}

export type Segment = FedSegment | PolicySegment;

export type FinishReason = 'stop' | 'length' | 'abort';

/** One policy segment and what the environment answered to it. */
export interface Step {
  /** Id of the policy segment. */
  readonly segment: number;
  /** Reward earned by this step; finite. */
  readonly reward: number;
  /**
   * [n] where in the step it was earned: what stands on each token of the segment; finite. What is left of `reward`
   * stands on the last token, and so does all of it where this is not given.
   */
  readonly tokenRewards?: readonly number[];
  readonly finishReason: FinishReason;
  /** Identifies the state in which the step was taken (GiGPO's anchor). */
  readonly stateKey?: string;
  /**
   * Whose turn it was, where several seats share an episode: each seat's view is a tree of its own with its own rewards,
   * compared with those of the same seat in the other episodes of the group.
   */
  readonly seat?: string;
  /** The turn neither called a tool nor answered, as the environment says. */
  readonly isVoid?: boolean;
  /** The turn's tool call failed, as the environment says. */
  readonly toolFailed?: boolean;
  readonly metrics?: Readonly<Record<string, number>>;
}

export type Outcome =
  | { readonly kind: 'done' }
  /** Ended by a limit: `reason` says which. */
  | { readonly kind: 'truncated'; readonly reason: 'turns' | 'tokens' | 'length' }
  /** Ended in order, and not to be trained on: the agent says so. It is no failure. */
  | { readonly kind: 'rejected'; readonly reason: string }
  | { readonly kind: 'failed'; readonly failure: FailureClass; readonly message: string; readonly step: number };

/**
 * What the leaves of one episode's tree are to each other:
 *   parts         pieces of one attempt (rewritten history, folded context, parallel sub-agents): what each earned adds up;
 *   alternatives  attempts of their own that share a beginning (tree search): what they earned is averaged.
 */
export type Leaves = 'parts' | 'alternatives';

export interface Episode {
  readonly id: string;
  readonly task: Task;
  /** Identifies the group of samples whose rewards are compared. */
  readonly group: string;
  /** Index of this episode inside its group. */
  readonly sample: number;
  readonly segments: readonly Segment[];
  /** In the order in which the steps were taken; at most one per policy segment. */
  readonly steps: readonly Step[];
  /** Parts when not given; a chain is both. */
  readonly leaves?: Leaves;
  readonly outcome: Outcome;
  /** Used for filtering; defaults to the episode's reward. */
  readonly score: number;
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * Sum of the rewards of all steps. Where leaves are alternatives, the mean over them in which every branch point shares
 * out its weight equally: a step counts Π 1 / children over the branch points above it.
 */
export function episodeReward(episode: Pick<Episode, 'steps' | 'segments' | 'leaves'>): number {
  const { steps, segments, leaves } = episode;
  if (leaves !== 'alternatives') return steps.reduce((sum, step) => sum + step.reward, 0);
  const weights = branchWeights(segments);
  return steps.reduce((sum, step) => sum + weights[step.segment]! * step.reward, 0);
}

/** Per segment: Π 1 / children over the branch points above it; several roots are a branch point, too. */
export function branchWeights(segments: readonly Segment[]): Float64Array {
  const children = new Map<number, number>();
  for (const { parent } of segments) children.set(parent, (children.get(parent) ?? 0) + 1);
  const weights = new Float64Array(segments.length);
  for (const { id, parent } of segments) weights[id] = (parent < 0 ? 1 : weights[parent]!) / children.get(parent)!;
  return weights;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Collects segments and steps while an executor runs, then gives the finished episode. */
export class EpisodeRecorder {
  readonly segments: Segment[] = [];
  readonly steps: Mutable<Step>[] = [];
  readonly #identity: Pick<Episode, 'id' | 'task' | 'group' | 'sample'>;

  constructor(identity: Pick<Episode, 'id' | 'task' | 'group' | 'sample'>) {
    this.#identity = identity;
  }

  /** Appends tokens that were fed to the policy below `parent` (−1: a new root). Returns the segment's id. */
  feed(parent: number, source: 'prompt' | 'environment', tokens: Int32Array, images?: readonly Image[]): number {
    return this.#add({ id: this.segments.length, parent, source, tokens, ...(images ? { images } : {}) });
  }

  /** Appends what the policy sampled below `parent`. Returns the segment's id. */
  sampled(parent: number, generation: Pick<PolicySegment, 'tokens' | 'logprobs' | 'versions'>): number {
    const { tokens, logprobs, versions } = generation;
    return this.#add({ id: this.segments.length, parent, source: 'policy', tokens, logprobs, versions });
  }

  /**
   * Cuts a sampled segment in two: it keeps its first `at` tokens, and the rest becomes a segment below it, which takes
   * over its step and what continued it. The beginning gets a step of its own that earned what stands on its tokens, so
   * that credit can be assigned where paths part. Returns the id of the rest, which may be above those of its children
   * until `arrange`.
   */
  split(segment: number, at: number): number {
    const whole = this.segments[segment];
    if (whole?.source !== 'policy' || !(at > 0 && at < whole.tokens.length)) {
      throw new RangeError(
        `segment ${segment} cannot be split at token ${at}: it must be sampled, and both parts filled`,
      );
    }
    const cut = (from: number, to?: number) => ({
      tokens: whole.tokens.slice(from, to),
      logprobs: whole.logprobs.slice(from, to),
      versions: whole.versions.slice(from, to),
    });
    const rest = this.segments.length;
    for (const child of this.segments) {
      if (child.parent === segment) this.segments[child.id] = { ...child, parent: rest };
    }
    this.segments[segment] = { ...whole, ...cut(0, at) };
    this.segments.push({ id: rest, parent: segment, source: 'policy', ...cut(at) });
    const index = this.steps.findIndex(step => step.segment === segment);
    if (index >= 0) {
      const step = this.steps[index]!;
      const { stateKey, tokenRewards } = step;
      const earned = sumOf(tokenRewards?.slice(0, at) ?? []);
      const beginning = {
        segment,
        reward: earned,
        ...(tokenRewards && { tokenRewards: tokenRewards.slice(0, at) }),
        finishReason: 'stop',
        ...(stateKey === undefined ? {} : { stateKey }),
      } as const;
      this.steps.splice(index, 1, beginning, {
        ...step,
        segment: rest,
        reward: step.reward - earned,
        ...(tokenRewards && { tokenRewards: tokenRewards.slice(at) }),
      });
    }
    return rest;
  }

  /** Gives ids by which parents come before their children again, after splits. Returns the new id of each old one. */
  arrange(): ReadonlyMap<number, number> {
    const { segments, steps, renamed } = inOrder(this.segments, this.steps);
    this.segments.splice(0, this.segments.length, ...segments);
    this.steps.splice(0, this.steps.length, ...steps);
    return renamed;
  }

  step(step: Step): void {
    this.steps.push({ ...step });
  }

  /**
   * Adds a reward that arrives after the episode has ended: what `steps` says to each step, and the rest to the last,
   * where `tokens` says on which tokens it stands.
   * @param places.tokens one for each token of the last step @param places.steps one for each step
   */
  addReward(reward: number, places: { readonly tokens?: readonly number[]; readonly steps?: readonly number[] } = {}) {
    const last = this.steps.at(-1);
    if (last === undefined) throw new Error('a reward needs a step to stand on, and this episode has none');
    const { tokens, steps = [] } = places;
    for (const [k, value] of steps.entries()) this.steps[k]!.reward += value;
    last.reward += reward - sumOf(steps);
    if (tokens) last.tokenRewards = tokens.map((value, t) => value + (last.tokenRewards?.[t] ?? 0));
  }

  /** How many process rewards the episode so far has room for. */
  places(): { readonly tokens: number; readonly steps: number } {
    const last = this.steps.at(-1);
    return { tokens: last === undefined ? 0 : this.segments[last.segment]!.tokens.length, steps: this.steps.length };
  }

  /** Tokens on the path from the root to `segment`, in the order in which the policy saw them. */
  context(segment: number): Int32Array {
    return pathTokens(this.segments, segment);
  }

  /** Number of those tokens. */
  contextLength(segment: number): number {
    return pathLength(this.segments, segment);
  }

  finish(
    outcome: Outcome,
    extra: {
      score?: number | undefined;
      metrics?: Readonly<Record<string, number>>;
      leaves?: Leaves | undefined;
    } = {},
  ): Episode {
    const { segments, steps } = inOrder(this.segments, this.steps);
    const tree = { segments, steps, ...(extra.leaves ? { leaves: extra.leaves } : {}) };
    return {
      ...this.#identity,
      ...tree,
      outcome,
      score: extra.score ?? episodeReward(tree),
      metrics: extra.metrics ?? {},
    };
  }

  #add(segment: Segment): number {
    if (segment.parent < -1 || segment.parent >= segment.id) {
      throw new Error(`segment ${segment.id} cannot continue segment ${segment.parent}: no such segment yet`);
    }
    this.segments.push(segment);
    return segment.id;
  }
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** Copies in which parents come before their children, which a split may have changed. */
function inOrder(segments: readonly Segment[], steps: readonly Step[]) {
  if (segments.every(({ id, parent }) => parent < id)) {
    const renamed = new Map(segments.map(({ id }) => [id, id]));
    return { segments: [...segments], steps: steps.map(step => ({ ...step })), renamed };
  }
  const children = new Map<number, number[]>();
  for (const { id, parent } of segments) children.set(parent, [...(children.get(parent) ?? []), id]);
  const order: number[] = [];
  const stack = [...(children.get(-1) ?? [])].reverse();
  for (let id = stack.pop(); id !== undefined; id = stack.pop()) {
    order.push(id);
    stack.push(...[...(children.get(id) ?? [])].reverse());
  }
  const renamed = new Map(order.map((id, index) => [id, index]));
  return {
    renamed,
    segments: order.map((id, index) => {
      const segment = segments[id]!;
      return { ...segment, id: index, parent: renamed.get(segment.parent) ?? -1 };
    }),
    steps: steps.map(step => ({ ...step, segment: renamed.get(step.segment)! })),
  };
}

/** Ids of the segments from the root to `leaf`, root first. */
export function path(segments: readonly Segment[], leaf: number): number[] {
  const ids: number[] = [];
  for (let id = leaf; id >= 0; id = segments[id]!.parent) ids.push(id);
  return ids.reverse();
}

/** Ids of the segments that no other segment continues. */
export function leaves(segments: readonly Segment[]): number[] {
  const continued = new Set(segments.map(segment => segment.parent));
  return segments.filter(segment => !continued.has(segment.id)).map(segment => segment.id);
}

function pathLength(segments: readonly Segment[], leaf: number): number {
  let length = 0;
  for (let id = leaf; id >= 0; id = segments[id]!.parent) length += segments[id]!.tokens.length;
  return length;
}

function pathTokens(segments: readonly Segment[], leaf: number): Int32Array {
  let end = pathLength(segments, leaf);
  const tokens = new Int32Array(end);
  for (let id = leaf; id >= 0; id = segments[id]!.parent) {
    end -= segments[id]!.tokens.length;
    tokens.set(segments[id]!.tokens, end);
  }
  return tokens;
}
