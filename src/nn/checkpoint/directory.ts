import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { latestDirectory, writeDirectoryAtomic } from '../../storage/atomic.ts';
import { type DecoderConfig, decoderConfig } from '../models/families.ts';
import { configText } from '../models/huggingface.ts';
import {
  type Parameter,
  parameterCount,
  parameterLayout,
  type TensorPlace,
  tensorPlaces,
} from '../models/parameters.ts';
import { writeSafetensors } from './safetensors.ts';
import { TensorStore, WEIGHTS_FILE } from './shards.ts';

export const CONFIG_FILE = 'config.json';

/** What belongs to a model beside its weights, and is copied with it. */
export const COMPANIONS = [
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'chat_template.jinja',
  'generation_config.json',
] as const;

export interface Checkpoint {
  readonly config: DecoderConfig;
  /** `config.json` as it stands, for writing it again. */
  readonly rawConfig: Readonly<Record<string, unknown>>;
  readonly layout: readonly Parameter[];
  /** All weights, float32, in the layout's order. */
  readonly weights: Float32Array;
  /** The files the weights came from. */
  readonly files: readonly string[];
}

/** A checkpoint whose tensors are read one at a time. */
export interface OpenCheckpoint extends Omit<Checkpoint, 'weights'> {
  /** The tensor as float32, into `into` (of exactly its size) or a new array. */
  read(place: TensorPlace, into?: Float32Array): Float32Array;
  close(): void;
}

/** Reads a Hugging Face checkpoint directory; see `openTensors`. */
export function openCheckpoint(path: string): Checkpoint {
  const { read, close, ...checkpoint } = openTensors(path);
  try {
    const weights = new Float32Array(parameterCount(checkpoint.layout));
    for (const place of tensorPlaces(checkpoint.layout)) {
      read(place, weights.subarray(place.offset, place.offset + place.size));
    }
    return { ...checkpoint, weights };
  } finally {
    close();
  }
}

/**
 * Opens a Hugging Face checkpoint directory. Throws when a tensor is missing, unexpected, or of another shape than
 * `config.json` asks for, naming the tensor, both shapes and the file.
 */
export function openTensors(path: string): OpenCheckpoint {
  const directory = latestDirectory(path);
  const { config, rawConfig } = readConfig(directory);
  const layout = parameterLayout(config);
  const store = new TensorStore(directory);
  try {
    checkTensors(store, layout, config, directory);
    if (config.tied) checkTiedHead(store, layout[0]!.parts[0]!.tensor);
  } catch (error) {
    store.close();
    throw error;
  }
  return {
    config,
    rawConfig,
    layout,
    files: store.files,
    read: ({ tensor }, into) => store.readTensor(tensor, into),
    close: () => store.close(),
  };
}

/** Reads and checks only `config.json`. */
export function readConfig(directory: string): Pick<Checkpoint, 'config' | 'rawConfig'> {
  const path = join(latestDirectory(directory), CONFIG_FILE);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`${path}: cannot be read (${(error as Error).message}); give a Hugging Face checkpoint directory`, {
      cause: error,
    });
  }
  let rawConfig: unknown;
  try {
    rawConfig = JSON.parse(text);
  } catch (error) {
    throw new Error(`${path}: not JSON (${(error as Error).message})`, { cause: error });
  }
  return { config: decoderConfig(rawConfig, path), rawConfig: rawConfig as Record<string, unknown> };
}

function checkTensors(
  store: TensorStore,
  layout: readonly Parameter[],
  config: DecoderConfig,
  directory: string,
): void {
  const files = store.files.join(', ');
  const places = tensorPlaces(layout);
  const missing = places.filter(({ tensor }) => store.find(tensor) === undefined).map(({ tensor }) => tensor);
  if (missing.length > 0) {
    throw new Error(`${files}: ${listed(missing)} missing, though ${join(directory, CONFIG_FILE)} asks for it`);
  }
  for (const { tensor, shape } of places) {
    const found = store.find(tensor)!;
    if (String(found.shape) === String(shape)) continue;
    const ofVocabulary = shape[0] === config.vocabSize && found.shape[1] === shape[1];
    throw new Error(
      `${found.file}: tensor ${tensor} has shape [${found.shape}], ${CONFIG_FILE} asks for [${shape}]${
        ofVocabulary ? ` (vocab_size ${config.vocabSize})` : ''
      }; give the config.json that belongs to these weights`,
    );
  }
  const expected = new Set(places.map(({ tensor }) => tensor));
  // Older Llama checkpoints store the rotary frequencies, which follow from the config.
  const extra = store.names.filter(
    name => !expected.has(name) && !(config.tied && name === HEAD) && !name.endsWith('.rotary_emb.inv_freq'),
  );
  if (extra.length > 0) {
    throw new Error(
      `${files}: ${listed(extra)} unexpected: ${join(directory, CONFIG_FILE)} describes a model without it; give the config.json that belongs to these weights`,
    );
  }
}

const HEAD = 'lm_head.weight';

function checkTiedHead(store: TensorStore, embed: string): void {
  const found = store.find(HEAD);
  if (found === undefined) return;
  const [embedding, head] = [store.readTensor(embed), store.readTensor(HEAD)];
  if (head.length === embedding.length && head.every((value, i) => value === embedding[i])) return;
  throw new Error(
    `${found.file}: tensor ${HEAD} [${found.shape}] differs from model.embed_tokens.weight, though ${CONFIG_FILE} ties them; set tie_word_embeddings to false`,
  );
}

/** `tensor a is` or `tensors a, b, c (and 9 more) are`. */
function listed(names: readonly string[]): string {
  const more = names.length > 3 ? ` (and ${names.length - 3} more)` : '';
  return `${names.length === 1 ? 'tensor' : 'tensors'} ${names.slice(0, 3).join(', ')}${more} ${names.length === 1 ? 'is' : 'are'}`;
}

export interface CheckpointContent {
  readonly rawConfig: Readonly<Record<string, unknown>>;
  readonly layout: readonly Parameter[];
  /** In the layout's order, or what makes each tensor when its turn comes to be written. */
  readonly weights: Float32Array | ((place: TensorPlace) => Float32Array);
  /** Directory whose tokenizer, chat template and generation settings are copied along. */
  readonly carry?: string;
  /** Default F32, which is exact. */
  readonly dtype?: 'F32' | 'BF16';
  /** Writes what else belongs into the directory before that takes its place. */
  readonly beside?: (temporary: string) => Promise<void>;
}

/**
 * Writes a checkpoint that `openCheckpoint` and Transformers load, whole or not at all; see `writeDirectoryAtomic`.
 * Replaces an older checkpoint, and refuses to replace anything else.
 */
export async function writeCheckpoint(directory: string, content: CheckpointContent): Promise<void> {
  const { layout, weights, carry, dtype = 'F32', beside } = content;
  const rawConfig: Record<string, unknown> = { ...content.rawConfig, dtype: dtype === 'F32' ? 'float32' : 'bfloat16' };
  delete rawConfig.torch_dtype;
  const tensors = tensorPlaces(layout).map(place => ({
    name: place.tensor,
    shape: place.shape,
    data:
      typeof weights === 'function' ? () => weights(place) : weights.subarray(place.offset, place.offset + place.size),
  }));
  refuseForeign(directory);
  await writeDirectoryAtomic(directory, async temporary => {
    await writeFile(join(temporary, CONFIG_FILE), configText(rawConfig));
    await writeSafetensors(join(temporary, WEIGHTS_FILE), tensors, { dtype, metadata: { format: 'pt' } });
    await beside?.(temporary);
    if (carry === undefined) return;
    for (const name of COMPANIONS) {
      const source = join(latestDirectory(carry), name);
      if (existsSync(source)) await writeFile(join(temporary, name), readFileSync(source));
    }
  });
}

/** A mistyped path must not cost somebody their files. */
function refuseForeign(directory: string): void {
  if (!existsSync(directory)) return;
  const names = readdirSync(directory);
  if (names.length === 0 || names.includes(CONFIG_FILE)) return;
  throw new Error(
    `${directory}: holds files (${names.slice(0, 3).join(', ')}) but no checkpoint, and is not replaced; choose a new or empty directory`,
  );
}
