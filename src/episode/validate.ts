import type { Episode, Outcome, PolicySegment, Segment, Step } from './episode.ts';
import { preview } from './explain.ts';
import { FAILURE_CLASSES } from './failure.ts';
import { SOURCE, type Trajectory } from './trajectory.ts';

/**
 * The invariants of episodes and trajectories, in one place. Executors keep them by construction; they are checked
 * again when a batch enters the learner and when a file is read.
 */

/**
 * A log-probability may exceed 0 by this much: `logit − logsumexp` in float32 rounds by about 1e-7 times the largest
 * logit, and logits stay below 100.
 */
export const LOGPROB_TOLERANCE = 1e-5;
const MOST_SHOWN = 8;

/** @throws Error listing what is wrong, where, with the value. */
export function validateEpisode(episode: Episode, options: { readonly vocabularySize?: number } = {}): void {
  const structure = structureProblems(episode);
  report(
    `episode ${preview(episode.id)}`,
    structure.length > 0 ? structure : valueProblems(episode, options.vocabularySize),
  );
}

/** @throws Error listing what is wrong, where, with the value. */
export function validateTrajectory(trajectory: Trajectory, options: { readonly vocabularySize?: number } = {}): void {
  const where = `trajectory of episode ${preview(trajectory.episode)}, leaf ${trajectory.leaf}`;
  report(where, trajectoryProblems(trajectory, options.vocabularySize));
}

/** What keeps an episode from being walked at all: ids, parents, array lengths and references. */
export function structureProblems({ segments, steps }: Pick<Episode, 'segments' | 'steps'>): string[] {
  const problems: string[] = [];
  segments.forEach((segment, index) => {
    const where = `segment ${index}`;
    const { id, parent, source, tokens } = segment;
    if (id !== index) problems.push(`${where}: id is ${preview(id)}; ids count from 0 in order`);
    if (!Number.isInteger(parent) || parent < -1 || parent >= index) {
      problems.push(`${where}: parent is ${preview(parent)}; a parent comes before its child, or is -1`);
    }
    if (!(source in SOURCE)) problems.push(`${where}: source is ${preview(source)}`);
    if (!(tokens instanceof Int32Array)) problems.push(`${where}: tokens are not an Int32Array`);
    else if (source === 'policy') problems.push(...lengthProblems(segment, where));
    else {
      for (const key of ['logprobs', 'versions']) {
        if (key in segment) problems.push(`${where}: a ${source} segment has ${key}; only policy segments have them`);
      }
    }
  });
  const taken = new Set<number>();
  steps.forEach(({ segment, tokenRewards }, index) => {
    const source = segments[segment]?.source;
    if (source !== 'policy') {
      problems.push(`step ${index}: segment ${preview(segment)} is ${source ? `a ${source} segment` : 'missing'}`);
    }
    if (taken.has(segment)) problems.push(`step ${index}: segment ${segment} has a step already`);
    taken.add(segment);
    const length = segments[segment]?.tokens?.length ?? 0;
    if (tokenRewards && tokenRewards.length !== length) {
      problems.push(
        `step ${index}: ${tokenRewards.length} token rewards for the ${length} tokens of segment ${segment}`,
      );
    }
  });
  return problems;
}

/** What is wrong with tokens said to be sampled. */
export function generationProblems(
  generation: Pick<PolicySegment, 'tokens' | 'logprobs' | 'versions'>,
  where: string,
  vocabularySize = Number.POSITIVE_INFINITY,
): string[] {
  const problems = lengthProblems(generation, where);
  if (problems.length > 0) return problems;
  const { tokens, logprobs, versions } = generation;
  problems.push(...tokenProblems(tokens, where, vocabularySize));
  logprobs.forEach((logprob, t) => {
    if (!isLogprob(logprob)) problems.push(`${where}: log-prob of token ${t} is ${logprob}; must be finite and <= 0`);
  });
  versions.forEach((version, t) => {
    if (version < 0) problems.push(`${where}: version of token ${t} is ${version}; must be >= 0`);
  });
  return problems;
}

function lengthProblems(segment: Omit<Partial<PolicySegment>, 'source'>, where: string): string[] {
  const { tokens, logprobs, versions } = segment;
  if (!(tokens instanceof Int32Array)) return [`${where}: tokens are not an Int32Array`];
  const problems: string[] = [];
  if (!(logprobs instanceof Float32Array) || logprobs.length !== tokens.length) {
    problems.push(`${where}: ${logprobs?.length ?? 'no'} log-probs (Float32Array) for ${tokens.length} tokens`);
  }
  if (!(versions instanceof Int32Array) || versions.length !== tokens.length) {
    problems.push(`${where}: ${versions?.length ?? 'no'} versions (Int32Array) for ${tokens.length} tokens`);
  }
  return problems;
}

function tokenProblems(tokens: Int32Array, where: string, vocabularySize: number): string[] {
  const problems: string[] = [];
  tokens.forEach((token, t) => {
    if (token < 0 || token >= vocabularySize) {
      problems.push(`${where}: token ${t} is ${token}; must be in [0, ${vocabularySize})`);
    }
  });
  return problems;
}

function valueProblems(episode: Episode, vocabularySize = Number.POSITIVE_INFINITY): string[] {
  const problems: string[] = [];
  const depth: number[] = [];
  for (const segment of episode.segments) {
    const before = segment.parent < 0 ? 0 : depth[segment.parent]!;
    depth.push(before + segment.tokens.length);
    problems.push(...segmentProblems(segment, before, vocabularySize));
  }
  episode.steps.forEach((step, index) => {
    problems.push(...stepProblems(step, index));
  });
  problems.push(...outcomeProblems(episode.outcome, episode.steps.length));
  if (!Number.isInteger(episode.sample) || episode.sample < 0) problems.push(`sample is ${preview(episode.sample)}`);
  if (!Number.isFinite(episode.score)) problems.push(`score is ${preview(episode.score)}; must be finite`);
  problems.push(...metricProblems(episode.metrics, ''));
  return problems;
}

function segmentProblems(segment: Segment, before: number, vocabularySize: number): string[] {
  const where = `segment ${segment.id}`;
  if (segment.source !== 'policy') return tokenProblems(segment.tokens, where, vocabularySize);
  const problems = generationProblems(segment, where, vocabularySize);
  if (before === 0 && segment.tokens.length > 0) {
    problems.push(`${where}: sampled tokens with no token before them; the sampler is always given a context`);
  }
  return problems;
}

function stepProblems(step: Step, index: number): string[] {
  const problems = metricProblems(step.metrics ?? {}, `step ${index}: `);
  if (!Number.isFinite(step.reward)) {
    problems.push(`step ${index}: reward is ${preview(step.reward)}; must be finite`);
  }
  const wrong = step.tokenRewards?.findIndex(value => !Number.isFinite(value)) ?? -1;
  if (wrong >= 0) {
    problems.push(`step ${index}: token reward ${wrong} is ${preview(step.tokenRewards![wrong])}; must be finite`);
  }
  if (!['stop', 'length', 'abort'].includes(step.finishReason)) {
    problems.push(`step ${index}: finish reason is ${preview(step.finishReason)}`);
  }
  return problems;
}

function metricProblems(metrics: Readonly<Record<string, number>>, where: string): string[] {
  return Object.entries(metrics)
    .filter(([, value]) => !Number.isFinite(value))
    .map(([name, value]) => `${where}metric ${name} is ${preview(value)}; must be finite`);
}

function outcomeProblems(outcome: Outcome, steps: number): string[] {
  switch (outcome.kind) {
    case 'done':
      return [];
    case 'truncated':
      return ['turns', 'tokens', 'length'].includes(outcome.reason)
        ? []
        : [`outcome truncated by ${preview(outcome.reason)}; must be turns, tokens or length`];
    case 'rejected':
      return typeof outcome.reason === 'string' && outcome.reason !== '' ? [] : ['a rejection without a reason'];
    case 'failed': {
      const problems: string[] = [];
      if (!FAILURE_CLASSES.includes(outcome.failure)) problems.push(`failure class is ${preview(outcome.failure)}`);
      if (typeof outcome.message !== 'string' || outcome.message === '') problems.push('a failure without a message');
      if (!Number.isInteger(outcome.step) || outcome.step < 0 || outcome.step > steps) {
        problems.push(`failed at step ${preview(outcome.step)}; the episode has ${steps} steps`);
      }
      return problems;
    }
    default:
      return [`outcome is ${preview(outcome)}`];
  }
}

function trajectoryProblems(trajectory: Trajectory, vocabularySize = Number.POSITIVE_INFINITY): string[] {
  const { tokens, sources, logprobs, versions, shared, steps } = trajectory;
  const length = tokens.length;
  const problems: string[] = [];
  for (const [name, array] of Object.entries({ sources, logprobs, versions, shared })) {
    if (array.length !== length) problems.push(`${array.length} ${name} for ${length} tokens`);
  }
  if (problems.length > 0) return problems;
  problems.push(...tokenProblems(tokens, 'tokens', vocabularySize));
  for (let t = 0; t < length; t++) {
    const sampled = sources[t] === SOURCE.policy;
    if (sources[t]! > SOURCE.environment) problems.push(`token ${t}: source code is ${sources[t]}`);
    if (sampled ? !isLogprob(logprobs[t]!) : !Number.isNaN(logprobs[t])) {
      problems.push(
        `token ${t}: log-prob is ${logprobs[t]}; ${sampled ? 'must be finite and <= 0' : 'not sampled, so NaN'}`,
      );
    }
    if (sampled ? versions[t]! < 0 : versions[t] !== -1) {
      problems.push(`token ${t}: version is ${versions[t]}; ${sampled ? 'must be >= 0' : 'not sampled, so -1'}`);
    }
    if (shared[t]! < 1) problems.push(`token ${t}: shared by ${shared[t]} leaves; must be >= 1`);
  }
  if (sources[0] === SOURCE.policy) problems.push('token 0 is sampled; the sampler is always given a context');
  let free = 0;
  steps.forEach((step, index) => {
    problems.push(...stepProblems(step, index));
    const { start, end, tokenRewards } = step;
    if (tokenRewards && tokenRewards.length !== end - start) {
      problems.push(`step ${index}: ${tokenRewards.length} token rewards for ${end - start} tokens`);
    }
    if (!(start >= free && end >= start && end <= length)) {
      problems.push(`step ${index}: covers [${start}, ${end}); must lie in [${free}, ${length})`);
    } else if (sources.subarray(start, end).some(source => source !== SOURCE.policy)) {
      problems.push(`step ${index}: covers tokens the policy did not sample in [${start}, ${end})`);
    }
    free = Math.max(free, end);
  });
  problems.push(...outcomeProblems(trajectory.outcome, Number.POSITIVE_INFINITY));
  if (!Number.isFinite(trajectory.score)) problems.push(`score is ${preview(trajectory.score)}; must be finite`);
  return problems;
}

function isLogprob(value: number): boolean {
  return value <= LOGPROB_TOLERANCE && value > Number.NEGATIVE_INFINITY;
}

function report(what: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  const more = problems.length > MOST_SHOWN ? [`and ${problems.length - MOST_SHOWN} more`] : [];
  throw new Error(`${what} is not valid: ${[...problems.slice(0, MOST_SHOWN), ...more].join('; ')}`);
}
