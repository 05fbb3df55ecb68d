import fc from 'fast-check';
import { type Episode, EpisodeRecorder, type Outcome } from '../../src/episode/episode.ts';
import { type Trajectory, toTrajectories } from '../../src/episode/trajectory.ts';

export interface TurnSpec {
  /** Tokens the policy samples. */
  readonly tokens: number;
  readonly reward?: number;
  /** [tokens] what of the reward stands on each token; all of it on the last one when not given. */
  readonly tokenRewards?: readonly number[];
  /** Tokens the environment answers with. */
  readonly environment?: number;
  readonly stateKey?: string;
  /** Log-probs of the sampled tokens; −1 each when not given. */
  readonly logprobs?: readonly number[];
}

export interface ChainSpec {
  readonly group?: string;
  readonly id?: string;
  readonly sample?: number;
  readonly turns: readonly TurnSpec[];
  readonly outcome?: Outcome;
}

let count = 0;

export function recorder({ group = 'g', id, sample = 0 }: Omit<ChainSpec, 'turns'> = {}): EpisodeRecorder {
  const task = { id: group, prompt: 'p', label: '', metadata: {} };
  return new EpisodeRecorder({ id: id ?? `episode-${count++}`, task, group, sample });
}

/** Appends a turn below `parent`; returns the last segment's id. */
export function turn(record: EpisodeRecorder, parent: number, spec: TurnSpec): number {
  const { tokens, reward = 0, tokenRewards, environment = 0, stateKey, logprobs } = spec;
  const segment = record.sampled(parent, {
    tokens: new Int32Array(tokens).fill(7),
    logprobs: logprobs ? Float32Array.from(logprobs) : new Float32Array(tokens).fill(-1),
    versions: new Int32Array(tokens),
  });
  record.step({
    segment,
    reward,
    ...(tokenRewards && { tokenRewards }),
    finishReason: 'stop',
    ...(stateKey === undefined ? {} : { stateKey }),
  });
  return environment > 0 ? record.feed(segment, 'environment', new Int32Array(environment).fill(9)) : segment;
}

export function chainEpisode(spec: ChainSpec): Episode {
  const record = recorder(spec);
  let at = record.feed(-1, 'prompt', Int32Array.of(1, 2));
  for (const step of spec.turns) at = turn(record, at, step);
  return record.finish(spec.outcome ?? { kind: 'done' });
}

/** One trajectory of a chain episode. */
export function chain(spec: ChainSpec): Trajectory {
  return toTrajectories(chainEpisode(spec))[0]!;
}

/** Single-turn episodes of one group: [reward, tokens]. */
export function group(name: string, members: readonly (readonly [reward: number, tokens: number])[]): Trajectory[] {
  return members.map(([reward, tokens], sample) => chain({ group: name, sample, turns: [{ tokens, reward }] }));
}

const reward = fc.double({ min: -5, max: 5, noNaN: true });

/** Chains of one to four turns in groups of one to five. */
export const anyBatch: fc.Arbitrary<Trajectory[]> = fc
  .array(
    fc.array(
      fc.array(
        fc.record({ tokens: fc.integer({ min: 1, max: 5 }), reward, environment: fc.integer({ min: 0, max: 3 }) }),
        { minLength: 1, maxLength: 4 },
      ),
      { minLength: 1, maxLength: 5 },
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map(groups =>
    groups.flatMap((members, g) => members.map((turns, sample) => chain({ group: `g${g}`, sample, turns }))),
  );
