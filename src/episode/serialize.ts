import { z } from 'zod';
import type { Episode, Segment } from './episode.ts';
import { explain } from './explain.ts';
import { FAILURE_CLASSES, messageOf } from './failure.ts';
import type { Image, Task } from './task.ts';
import { structureProblems } from './validate.ts';

/**
 * Episodes as lines of JSON, read back exactly: float32 log-probs are written with as few digits as give the same
 * float32 again, images as base64. JSON has no NaN, infinities or −0, so these are written as strings.
 * `Task.metadata` comes from a dataset row and must itself be JSON.
 */

const FORMAT = 'tokenloop.episode';
export const FORMAT_VERSION = 1;

const NOT_JSON = ['NaN', 'Infinity', '-Infinity', '-0'] as const;
const float = z.union([z.number(), z.enum(NOT_JSON).transform(Number)]);
const floats = z.array(float).transform(values => Float32Array.from(values));
const ints = z.array(z.int32()).transform(values => Int32Array.from(values));
const image = z
  .object({ mediaType: z.string(), data: z.base64() })
  .transform(({ mediaType, data }) => ({ mediaType, data: new Uint8Array(Buffer.from(data, 'base64')) }));
const metrics = z.record(z.string(), float);

const task = z.object({
  id: z.string(),
  prompt: z.union([z.string(), z.array(z.looseObject({ role: z.string(), content: z.string() }))]),
  label: z.string(),
  images: z.array(image).optional(),
  source: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()),
});

const segment = z.discriminatedUnion('source', [
  z.object({
    parent: z.int(),
    source: z.enum(['prompt', 'environment']),
    tokens: ints,
    images: z.array(image).optional(),
  }),
  z.object({
    parent: z.int(),
    source: z.literal('policy'),
    tokens: ints,
    logprobs: floats,
    versions: ints,
    images: z.array(image).optional(),
  }),
]);

const step = z.object({
  segment: z.int(),
  reward: float,
  tokenRewards: z.array(float).optional(),
  finishReason: z.enum(['stop', 'length', 'abort']),
  stateKey: z.string().optional(),
  seat: z.string().optional(),
  isVoid: z.boolean().optional(),
  toolFailed: z.boolean().optional(),
  metrics: metrics.optional(),
});

const outcome = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('done') }),
  z.object({ kind: z.literal('truncated'), reason: z.enum(['turns', 'tokens', 'length']) }),
  z.object({ kind: z.literal('rejected'), reason: z.string() }),
  z.object({ kind: z.literal('failed'), failure: z.enum(FAILURE_CLASSES), message: z.string(), step: z.int() }),
]);

const episodeLine = z.object({
  id: z.string(),
  task,
  group: z.string(),
  sample: z.int(),
  segments: z.array(segment).transform(segments => segments.map((one, id) => ({ id, ...one }))),
  steps: z.array(step),
  leaves: z.enum(['parts', 'alternatives']).optional(),
  outcome,
  score: float,
  metrics,
});

/** One line of JSON, without the line break. */
export function serializeEpisode(episode: Episode): string {
  return JSON.stringify({
    format: FORMAT,
    version: FORMAT_VERSION,
    id: episode.id,
    task: writeTask(episode.task),
    group: episode.group,
    sample: episode.sample,
    segments: episode.segments.map(writeSegment),
    steps: episode.steps.map(({ metrics, tokenRewards, ...rest }) => ({
      ...rest,
      reward: writeNumber(rest.reward),
      ...(tokenRewards ? { tokenRewards: tokenRewards.map(writeNumber) } : {}),
      ...(metrics ? { metrics: writeMetrics(metrics) } : {}),
    })),
    ...(episode.leaves ? { leaves: episode.leaves } : {}),
    outcome: episode.outcome,
    score: writeNumber(episode.score),
    metrics: writeMetrics(episode.metrics),
  });
}

/**
 * Reads one line of `serializeEpisode`. Structure is checked here; `validateEpisode` checks the values.
 * @param where names the line in errors, for example `episodes.jsonl:12`
 */
export function parseEpisode(line: string, where = 'episode'): Episode {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new Error(`${where}: not JSON: ${messageOf(error)}`, { cause: error });
  }
  const { format, version } = Object(value) as { format?: unknown; version?: unknown };
  if (format !== FORMAT) throw new Error(`${where}: not an episode: its format is ${format}, not ${FORMAT}`);
  if (version !== FORMAT_VERSION) {
    throw new Error(`${where}: episode format version ${version}; this tokenloop reads version ${FORMAT_VERSION}`);
  }
  const parsed = episodeLine.safeParse(value);
  if (!parsed.success) throw new Error(`${where}: ${explain(parsed.error, value)}`);
  // zod types absent keys as `| undefined`; it never writes them.
  const episode = parsed.data as Episode;
  const problems = structureProblems(episode);
  if (problems.length > 0) throw new Error(`${where}: ${problems.join('; ')}`);
  return episode;
}

function writeTask({ images, ...rest }: Task): object {
  return { ...rest, ...writeImages(images) };
}

function writeSegment(segment: Segment): object {
  const { parent, source } = segment;
  const fed = { parent, source, tokens: Array.from(segment.tokens), ...writeImages(segment.images) };
  if (segment.source !== 'policy') return fed;
  return { ...fed, logprobs: Array.from(segment.logprobs, writeFloat32), versions: Array.from(segment.versions) };
}

function writeImages(images: readonly Image[] | undefined): object {
  if (images === undefined) return {};
  return {
    images: images.map(({ mediaType, data }) => ({
      mediaType,
      data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
    })),
  };
}

function writeMetrics(values: Readonly<Record<string, number>>): object {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, writeNumber(value)]));
}

function writeNumber(value: number): number | string {
  if (Object.is(value, -0)) return '-0';
  return Number.isFinite(value) ? value : String(value);
}

/** The shortest decimal that rounds to the same float32; nine digits always do. */
function writeFloat32(value: number): number | string {
  if (!Number.isFinite(value) || value === 0) return writeNumber(value);
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(9));
}
