import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Checkpoint, openCheckpoint, readConfig } from '../../nn/checkpoint/directory.ts';
import { INDEX_FILE, WEIGHTS_FILE } from '../../nn/checkpoint/shards.ts';
import { decoderConfig, scoreConfig } from '../../nn/models/families.ts';
import { initialise, parameterCount, parameterLayout, tensorPlaces } from '../../nn/models/parameters.ts';

export interface OpenOptions {
  /** Draws fresh weights where the directory has a configuration but none. */
  readonly initSeed?: number | undefined;
  /** `score` makes a value model of a language model: its head is new and says 0. Without it the checkpoint's own head. */
  readonly head?: 'score' | undefined;
}

export type OpenedModel = Pick<Checkpoint, 'config' | 'rawConfig' | 'layout' | 'weights'>;

/** A checkpoint directory as a model. */
export function openModel(directory: string, { initSeed, head }: OpenOptions): OpenedModel {
  const opened = openOrDraw(directory, initSeed);
  return head === undefined || opened.config.head === head ? opened : withValueHead(opened);
}

function openOrDraw(directory: string, initSeed: number | undefined): OpenedModel {
  const stored = existsSync(join(directory, WEIGHTS_FILE)) || existsSync(join(directory, INDEX_FILE));
  if (stored || initSeed === undefined) return openCheckpoint(directory);
  const { config, rawConfig } = readConfig(directory);
  const layout = parameterLayout(config);
  return { config, rawConfig, layout, weights: initialise(config, layout, initSeed) };
}

/** The same backbone with a value head of zeros in place of the vocabulary's. */
function withValueHead(model: OpenedModel): OpenedModel {
  const rawConfig = scoreConfig(model.rawConfig);
  const config = decoderConfig(rawConfig);
  const layout = parameterLayout(config);
  const weights = new Float32Array(parameterCount(layout));
  const known = new Map(tensorPlaces(model.layout).map(place => [place.tensor, place]));
  for (const { tensor, offset } of tensorPlaces(layout)) {
    const source = known.get(tensor);
    if (source !== undefined) weights.set(model.weights.subarray(source.offset, source.offset + source.size), offset);
  }
  return { config, rawConfig, layout, weights };
}
