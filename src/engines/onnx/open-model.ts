import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Checkpoint, openCheckpoint, openTensors, readConfig } from '../../nn/checkpoint/directory.ts';
import { INDEX_FILE, WEIGHTS_FILE } from '../../nn/checkpoint/shards.ts';
import { decoderConfig, scoreConfig } from '../../nn/models/families.ts';
import {
  initialise,
  parameterCount,
  parameterLayout,
  type TensorPlace,
  tensorPlaces,
} from '../../nn/models/parameters.ts';

export interface OpenOptions {
  /** Draws fresh weights where the directory has a configuration but none. */
  readonly initSeed?: number | undefined;
  /** `score` makes a value model of a language model: its head is new and says 0. Without it the checkpoint's own head. */
  readonly head?: 'score' | undefined;
}

export type OpenedModel = Pick<Checkpoint, 'config' | 'rawConfig' | 'layout' | 'weights'>;

/** A model whose tensors are read one at a time. */
export interface OpenTensors extends Omit<OpenedModel, 'weights'> {
  read(place: TensorPlace): Float32Array;
  close(): void;
}

/** A checkpoint directory as a model. */
export function openModel(directory: string, { initSeed, head }: OpenOptions): OpenedModel {
  const opened = isDrawn(directory, initSeed) ? draw(directory, initSeed!) : openCheckpoint(directory);
  if (head === undefined || opened.config.head === head) return opened;
  const model = valueModel(opened);
  const weights = new Float32Array(parameterCount(model.layout));
  const known = new Map(tensorPlaces(opened.layout).map(place => [place.tensor, place]));
  for (const { tensor, offset } of tensorPlaces(model.layout)) {
    const source = known.get(tensor);
    if (source !== undefined) weights.set(opened.weights.subarray(source.offset, source.offset + source.size), offset);
  }
  return { ...model, weights };
}

/** The same model, without ever holding all of its weights where they are stored. */
export function openModelTensors(directory: string, options: OpenOptions): OpenTensors {
  const { initSeed, head } = options;
  if (isDrawn(directory, initSeed)) {
    const { weights, ...model } = openModel(directory, options);
    return {
      ...model,
      read: ({ offset, size }) => weights.subarray(offset, offset + size),
      close: () => undefined,
    };
  }
  const opened = openTensors(directory);
  if (head === undefined || opened.config.head === head) return opened;
  const known = new Set(tensorPlaces(opened.layout).map(({ tensor }) => tensor));
  const read = (place: TensorPlace) => (known.has(place.tensor) ? opened.read(place) : new Float32Array(place.size));
  return { ...opened, ...valueModel(opened), read };
}

function isDrawn(directory: string, initSeed: number | undefined): boolean {
  return initSeed !== undefined && ![WEIGHTS_FILE, INDEX_FILE].some(name => existsSync(join(directory, name)));
}

function draw(directory: string, seed: number): OpenedModel {
  const { config, rawConfig } = readConfig(directory);
  const layout = parameterLayout(config);
  return { config, rawConfig, layout, weights: initialise(config, layout, seed) };
}

/** The same backbone with a value head, of zeros, in place of the vocabulary's. */
function valueModel(model: Pick<OpenedModel, 'rawConfig'>): Omit<OpenedModel, 'weights'> {
  const rawConfig = scoreConfig(model.rawConfig);
  const config = decoderConfig(rawConfig);
  return { rawConfig, config, layout: parameterLayout(config) };
}
