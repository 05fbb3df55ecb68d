import type { Leaves } from '../episode/episode.ts';
import { SOURCE, type Trajectory } from '../episode/trajectory.ts';

/**
 * What credit assignment works on: an attempt is a stream of the distinct policy tokens of one try at a task, cut into
 * turns, with each turn's reward on its last token, or on the tokens that its step names. Environment tokens are not in
 * the stream, so they are not time.
 *
 * An episode recorded as several rows (one per leaf of its tree) is one of two things, and says which (`leaves`):
 *   parts         the rows are pieces of one attempt (rewritten history, folded context, one row per turn): one attempt,
 *                 whose turns are the distinct turns of all rows in the order in which they were recorded;
 *   alternatives  each row is an attempt of its own (tree search), weighing Π 1 / children over the branch points on
 *                 its path, so an episode's leaves weigh 1 together: a tree never counts as several group members.
 * A chain is one attempt of weight 1 either way.
 *
 * Where several seats share an episode (`Step.seat`), the rows of each seat are an attempt of their own, in a group of
 * their own: seats are never compared with each other.
 */
export const LEAVES = ['parts', 'alternatives'] as const satisfies readonly Leaves[];

export interface Turn {
  /** The turn's tokens are [start, end) of the stream. */
  readonly start: number;
  readonly end: number;
  readonly reward: number;
  /** [end − start] what of it stands on each token; all of it on the last one when not given. */
  readonly rewards?: Float64Array;
  readonly stateKey?: string;
  /** Id of the policy segment. */
  readonly segment: number;
}

export interface Attempt {
  readonly episode: string;
  readonly task: string;
  readonly group: string;
  /** In (0, 1]. */
  readonly weight: number;
  readonly turns: readonly Turn[];
  /** Tokens in the stream. */
  readonly length: number;
}

/** Where a row's turns are in the stream of its attempt. */
interface Row {
  readonly attempt: number;
  readonly turns: readonly Turn[];
  /** [turns] start of each turn in the stream; undefined where the row is the whole stream. */
  readonly starts: readonly number[] | undefined;
  readonly length: number;
}

export class Attempts {
  readonly attempts: readonly Attempt[];
  readonly #rows: readonly Row[];

  constructor(attempts: readonly Attempt[], rows: readonly Row[]) {
    this.attempts = attempts;
    this.#rows = rows;
  }

  /** Per attempt [length] zeros, in one block of memory: ten thousand small ones cost more than what is done with them. */
  zeros(): Float64Array[] {
    const block = new Float64Array(this.attempts.reduce((sum, { length }) => sum + length, 0));
    let start = 0;
    return this.attempts.map(({ length }) => {
      start += length;
      return block.subarray(start - length, start);
    });
  }

  /** Values per row [P] → values per attempt [length]. Rows that share a token must agree on it. */
  gather(what: string, perRow: readonly (Float32Array | Uint8Array)[]): Float64Array[] {
    if (perRow.length !== this.#rows.length) {
      throw new Error(`${what}: ${perRow.length} arrays for ${this.#rows.length} trajectories`);
    }
    const streams = this.zeros();
    for (const [index, { attempt, turns, starts, length }] of this.#rows.entries()) {
      const values = perRow[index]!;
      if (values.length !== length) {
        throw new Error(`${what}: trajectory ${index} has ${length} policy tokens, got ${values.length} values`);
      }
      const stream = streams[attempt]!;
      if (starts === undefined) stream.set(values);
      else for (const [j, { start, end }] of turns.entries()) stream.set(values.subarray(start, end), starts[j]!);
    }
    return streams;
  }

  /** Values per attempt [length] → values per row [P]. */
  scatter(streams: readonly Float64Array[]): Float32Array[] {
    return this.#rows.map(({ attempt, turns, starts, length }) => {
      const stream = streams[attempt]!;
      if (starts === undefined) return new Float32Array(stream);
      const row = new Float32Array(length);
      for (const [j, turn] of turns.entries()) {
        const start = starts[j]!;
        row.set(stream.subarray(start, start + turn.end - turn.start), turn.start);
      }
      return row;
    });
  }
}

/**
 * @param leaves what the rows of an episode are taken for, whatever the episode says
 * @throws Error for a failed episode (it is never trained on) and for a reward that is not finite, naming the episode.
 */
export function attemptsOf(trajectories: readonly Trajectory[], leaves?: Leaves): Attempts {
  const turns = trajectories.map(turnsOfRow);
  const byTry = new Map<string, number[]>();
  for (const [i, trajectory] of trajectories.entries()) {
    if (trajectory.outcome.kind === 'failed') {
      throw new Error(
        `episode '${trajectory.episode}' failed (${trajectory.outcome.message}) and cannot be trained on`,
      );
    }
    if (trajectory.outcome.kind === 'rejected') {
      throw new Error(
        `episode '${trajectory.episode}' was rejected (${trajectory.outcome.reason}) and cannot be trained on`,
      );
    }
    const key = ofSeat(trajectory.episode, seatOf(trajectory));
    const rows = byTry.get(key);
    if (rows) rows.push(i);
    else byTry.set(key, [i]);
  }

  const attempts: Attempt[] = [];
  const rows = new Array<Row>(trajectories.length);
  const add = (members: readonly number[], attemptTurns: readonly Turn[], weight: number) => {
    const first = trajectories[members[0]!]!;
    const seat = seatOf(first);
    const [episode, group, { task }] = [ofSeat(first.episode, seat), ofSeat(first.group, seat), first];
    // A lone row is its own stream; merged rows find their turns by segment.
    const placed = members.length > 1 ? new Map(attemptTurns.map(turn => [turn.segment, turn.start])) : undefined;
    for (const i of members) {
      rows[i] = {
        attempt: attempts.length,
        turns: turns[i]!,
        starts: placed && turns[i]!.map(turn => placed.get(turn.segment)!),
        length: turns[i]!.at(-1)?.end ?? 0,
      };
    }
    attempts.push({ episode, task, group, weight, turns: attemptTurns, length: attemptTurns.at(-1)?.end ?? 0 });
  };
  for (const members of byTry.values()) {
    if (members.length === 1) add(members, turns[members[0]!]!, 1);
    else if ((leaves ?? trajectories[members[0]!]!.leaves) === 'parts')
      add(members, merged(members.map(i => turns[i]!)), 1);
    else {
      const weights = leafWeights(members.map(i => turns[i]!));
      for (const [j, i] of members.entries()) add([i], turns[i]!, weights[j]!);
    }
  }
  return new Attempts(attempts, rows);
}

/** Whose row it is. All turns of a row are one seat's: its view is a tree of its own. */
function seatOf({ steps }: Trajectory): string | undefined {
  return steps[0]?.seat;
}

/** The name of a seat's share of an episode or a group. */
export function ofSeat(name: string, seat: string | undefined): string {
  return seat === undefined ? name : `${name} [${seat}]`;
}

/**
 * The turns of one row, over its policy tokens. Tokens before a step's end that belong to no step count to that step;
 * tokens after the last step form a turn without reward.
 */
function turnsOfRow(trajectory: Trajectory): Turn[] {
  const { sources, steps, leaf } = trajectory;
  const turns: Turn[] = [];
  const { policy } = SOURCE;
  let cursor = 0;
  let tokens = 0;
  for (const { segment, start: from, end, reward, stateKey, tokenRewards } of steps) {
    if (!Number.isFinite(reward)) {
      throw new Error(`episode '${trajectory.episode}' has the reward ${reward}; rewards must be finite numbers`);
    }
    const start = tokens;
    for (; cursor < from; cursor++) if (sources[cursor] === policy) tokens++;
    // A step covers tokens of the policy and no others.
    tokens += end - from;
    cursor = end;
    const rewards = tokenRewards?.length ? placed(tokenRewards, reward, tokens - start, trajectory.episode) : undefined;
    turns.push({
      start,
      end: tokens,
      reward,
      segment,
      ...(rewards === undefined ? {} : { rewards }),
      ...(stateKey === undefined ? {} : { stateKey }),
    });
  }
  const start = tokens;
  for (; cursor < sources.length; cursor++) if (sources[cursor] === policy) tokens++;
  if (tokens > start) turns.push({ start, end: tokens, reward: 0, segment: leaf });
  return turns;
}

/** [length] the token rewards on the last tokens of a turn, and what they leave of its reward on the last one. */
function placed(tokenRewards: readonly number[], reward: number, length: number, episode: string): Float64Array {
  const rewards = new Float64Array(length);
  rewards.set(tokenRewards, length - tokenRewards.length);
  const sum = tokenRewards.reduce((total, value) => total + value, 0);
  if (!Number.isFinite(sum)) {
    throw new Error(`episode '${episode}' has token rewards that sum to ${sum}; rewards must be finite numbers`);
  }
  rewards[length - 1]! += reward - sum;
  return rewards;
}

/** Distinct turns of several rows in the order of their segments, laid end to end. */
function merged(rows: readonly (readonly Turn[])[]): Turn[] {
  const distinct = new Map<number, Turn>();
  for (const turn of rows.flat()) distinct.set(turn.segment, turn);
  let start = 0;
  return [...distinct.values()]
    .sort((a, b) => a.segment - b.segment)
    .map(turn => {
      const end = start + turn.end - turn.start;
      const placed = { ...turn, start, end };
      start = end;
      return placed;
    });
}

/** Weight of each leaf: 1 divided equally among the children at each branch point. */
function leafWeights(rows: readonly (readonly Turn[])[]): number[] {
  const weights = new Array<number>(rows.length).fill(0);
  const descend = (members: readonly number[], depth: number, weight: number): void => {
    if (members.length === 1) {
      weights[members[0]!] = weight;
      return;
    }
    const children = new Map<number | string, number[]>();
    for (const i of members) {
      // A path that ends here is a child of its own.
      const key = rows[i]![depth]?.segment ?? `end ${i}`;
      children.set(key, [...(children.get(key) ?? []), i]);
    }
    for (const child of children.values()) descend(child, depth + 1, weight / children.size);
  };
  descend(
    rows.map((_, i) => i),
    0,
    1,
  );
  return weights;
}
