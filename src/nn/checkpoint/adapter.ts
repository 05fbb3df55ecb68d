import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { latestDirectory } from '../../storage/atomic.ts';
import { type Adapter, adaptedModule, adapterOf, type LoraConfig } from '../models/lora.ts';
import { type Parameter, parameterCount, tensorPlaces } from '../models/parameters.ts';
import { isHubName } from './hub.ts';
import { SafetensorsFile, writeSafetensors } from './safetensors.ts';

/** LoRA adapters as directories in the layout of PEFT. */

export const ADAPTER_CONFIG_FILE = 'adapter_config.json';
export const ADAPTER_WEIGHTS_FILE = 'adapter_model.safetensors';
/** Metadata of the weights: the base they were trained on. PEFT writes no such thing and passes over it. */
const DIGEST = 'base_sha256';

/** What an adapter is held against. */
export interface AdapterBase {
  readonly directory: string;
  readonly layout: readonly Parameter[];
  readonly weights: Float32Array;
  /** `baseDigest` where it is known already. */
  readonly digest?: string;
}

/** SHA-256 of the base's weights as float32, whatever type its files have. */
export function baseDigest(base: Pick<AdapterBase, 'weights' | 'digest'>): string {
  if (base.digest !== undefined) return base.digest;
  const { weights } = base;
  const hash = createHash('sha256');
  // One update takes less than 2 GiB.
  for (let start = 0; start < weights.length; start += 1 << 26) {
    const part = weights.subarray(start, start + (1 << 26));
    hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
  return hash.digest('hex');
}

/** The name on the hub of a model in the cache of the hub, otherwise its path. */
function baseName(directory: string): string {
  const path = resolve(directory);
  const cached = /[\\/]models--([^\\/]+)[\\/]snapshots[\\/][^\\/]+$/.exec(path);
  return cached ? cached[1]!.replace('--', '/') : path;
}

/** Writes the two files of an adapter into a directory that is there; not atomic. */
export async function writeAdapter(
  directory: string,
  { adapter, weights, base, digest }: OpenedAdapter & { readonly base: AdapterBase; readonly digest: string },
): Promise<void> {
  const hasHead = base.layout.some(({ name }) => name === 'score');
  const config = {
    peft_type: 'LORA',
    task_type: hasHead ? 'SEQ_CLS' : 'CAUSAL_LM',
    base_model_name_or_path: baseName(base.directory),
    r: adapter.rank,
    lora_alpha: adapter.alpha,
    lora_dropout: 0,
    target_modules: adapter.targetModules,
    modules_to_save: hasHead ? ['score'] : null,
    bias: 'none',
    fan_in_fan_out: false,
    init_lora_weights: true,
    inference_mode: true,
  };
  await writeFile(join(directory, ADAPTER_CONFIG_FILE), `${JSON.stringify(config, null, 2)}\n`);
  const tensors = tensorPlaces(adapter.layout).map(({ tensor, shape, offset, size }) => ({
    name: tensor,
    shape,
    data: weights.subarray(offset, offset + size),
  }));
  await writeSafetensors(join(directory, ADAPTER_WEIGHTS_FILE), tensors, {
    metadata: { format: 'pt', [DIGEST]: digest },
  });
}

export interface OpenedAdapter {
  readonly adapter: Adapter;
  /** The trained parameters, in the order of the adapter's layout. */
  readonly weights: Float32Array;
}

/**
 * Reads an adapter for a base. Throws when it was trained on another base, as far as that can be told: by the digest
 * that `writeAdapter` leaves, by the names of both on the hub, and by every tensor's name and shape.
 */
export function readAdapter(path: string, base: AdapterBase): OpenedAdapter {
  const directory = latestDirectory(path);
  const config = readConfig(directory);
  const [theirs, ours] = [config.base_model_name_or_path, baseName(base.directory)];
  if (theirs != null && theirs !== ours && isHubName(theirs) && isHubName(ours)) {
    throw new Error(`${directory}: the adapter is for ${theirs}, and the model is ${ours}; give it its own base`);
  }
  const file = new SafetensorsFile(join(directory, ADAPTER_WEIGHTS_FILE));
  try {
    const modules = [...file.tensors.keys()].map(adaptedModule).filter(name => name !== undefined);
    const adapter = adapterFor(config, modules, base, file.path);
    checkTensors(file, adapter, base);
    const { [DIGEST]: digest } = file.metadata;
    if (digest !== undefined && digest !== baseDigest(base)) {
      throw new Error(
        `${file.path}: the adapter was trained on other weights than those in ${base.directory}; give it its own base`,
      );
    }
    const weights = new Float32Array(parameterCount(adapter.layout));
    for (const { tensor, offset, size } of tensorPlaces(adapter.layout)) {
      file.readTensor(tensor, weights.subarray(offset, offset + size));
    }
    return { adapter, weights };
  } finally {
    file.close();
  }
}

/** What an adapter says of itself. */
export interface AdapterSettings {
  /** Its size at most: which modules it has is seen only beside a base. */
  readonly lora: LoraConfig;
  /** It brings a value head: its base is to be opened with one. */
  readonly hasHead: boolean;
}

export function adapterSettings(path: string): AdapterSettings {
  const { r: rank, lora_alpha: alpha, task_type: task } = readConfig(latestDirectory(path));
  return { lora: { rank, alpha, targetModules: 'all-linear' }, hasHead: task === 'SEQ_CLS' };
}

function adapterFor(config: AdapterConfig, modules: readonly string[], base: AdapterBase, path: string): Adapter {
  const { r: rank, lora_alpha: alpha, use_rslora: stabilised } = config;
  try {
    // Rank-stabilised LoRA (Kalajdzievski 2023) multiplies by alpha / √rank.
    return adapterOf(base.layout, {
      rank,
      alpha: stabilised ? alpha * Math.sqrt(rank) : alpha,
      targetModules: modules,
    });
  } catch (error) {
    throw new Error(`${path}: no adapter for ${base.directory}: ${(error as Error).message}`, { cause: error });
  }
}

function checkTensors(file: SafetensorsFile, { layout }: Adapter, base: AdapterBase): void {
  const places = tensorPlaces(layout);
  const told = `the base in ${base.directory}`;
  for (const { tensor, shape } of places) {
    const found = file.tensors.get(tensor);
    if (found === undefined) {
      throw new Error(`${file.path}: tensor ${tensor} is missing; an adapter for ${told} has a module in every layer`);
    }
    if (String(found.shape) !== String(shape)) {
      throw new Error(
        `${file.path}: tensor ${tensor} has shape [${found.shape}], and [${shape}] would fit ${told}; give the adapter its own base`,
      );
    }
  }
  const expected = new Set(places.map(({ tensor }) => tensor));
  const extra = [...file.tensors.keys()].find(name => !expected.has(name));
  if (extra !== undefined) {
    throw new Error(`${file.path}: tensor ${extra} has no place in ${told}; give the adapter its own base`);
  }
}

/** PEFT's fields that are read; absent and null are the same. */
const schema = z.object({
  peft_type: z.string(),
  task_type: z.string().nullish(),
  base_model_name_or_path: z.string().nullish(),
  r: z.int().min(1),
  lora_alpha: z.number().positive(),
  use_rslora: z.boolean().nullish(),
});
type AdapterConfig = z.infer<typeof schema>;

/** Values of fields that change nothing about W + scale · B A; with others the adapter is refused. */
const PLAIN: Readonly<Record<string, (value: unknown) => boolean>> = {
  peft_type: value => value === 'LORA',
  bias: value => value === 'none',
  use_dora: value => value === false,
  use_qalora: value => value === false,
  use_bdlora: value => value === false,
  lora_bias: value => value === false,
  fan_in_fan_out: value => value === false,
  rank_pattern: isEmpty,
  alpha_pattern: isEmpty,
  layer_replication: isEmpty,
  target_parameters: isEmpty,
  trainable_token_indices: isEmpty,
  // The other ways to start also change the base.
  init_lora_weights: value => [true, false, 'gaussian', 'eva', 'orthogonal'].includes(value as string),
};

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && Object.keys(value as object).length === 0;
}

function readConfig(directory: string): AdapterConfig {
  const path = join(directory, ADAPTER_CONFIG_FILE);
  if (!existsSync(path))
    throw new Error(`${path}: no such file; give the directory of an adapter in the layout of PEFT`);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: not JSON (${(error as Error).message})`, { cause: error });
  }
  const parsed = schema.safeParse(content);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Error(`${path}: ${issue!.path.join('.') || 'the file'}: ${issue!.message}; PEFT writes such files`);
  }
  for (const [field, value] of Object.entries(content as Record<string, unknown>)) {
    if (value == null || !Object.hasOwn(PLAIN, field) || PLAIN[field]!(value)) continue;
    throw new Error(
      `${path}: ${field} is ${JSON.stringify(value)}, which is not implemented; merge it with PEFT first`,
    );
  }
  return parsed.data;
}
