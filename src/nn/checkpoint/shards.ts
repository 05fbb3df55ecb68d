import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import type { TensorInfo } from './header.ts';
import { SafetensorsFile } from './safetensors.ts';

export const WEIGHTS_FILE = 'model.safetensors';
export const INDEX_FILE = 'model.safetensors.index.json';

const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

const FOREIGN = /\.(bin|pt|pth|ckpt|pkl|h5|msgpack|gguf)$/;
const PICKLE = /\.(bin|pt|pth|ckpt|pkl)$/;
/** What trainers leave beside a model. */
const LEFTOVERS = /^(training_args|optimizer|scheduler|rng_state)/;

/**
 * The file of `names` that leads to the weights, or undefined. Throws, naming them, when the weights are there but in
 * another format: a pickle would run whatever code it holds. `where` starts the message.
 */
export function weightsAmong(names: readonly string[], where: string): string | undefined {
  const known = [WEIGHTS_FILE, INDEX_FILE].find(name => names.includes(name));
  if (known !== undefined) return known;
  const foreign = names.find(name => FOREIGN.test(name) && !LEFTOVERS.test(name));
  if (foreign === undefined) return undefined;
  const danger = PICKLE.test(foreign) ? ', a pickle, which may run code when it is read' : '';
  throw new Error(
    `${where}: neither ${WEIGHTS_FILE} nor ${INDEX_FILE} is there, only ${foreign}${danger}; convert it to safetensors (save_pretrained of Transformers does)`,
  );
}

/** The tensors of a checkpoint directory, whether in one file or in shards. */
export class TensorStore {
  readonly files: readonly string[];
  readonly #owners = new Map<string, SafetensorsFile>();
  readonly #open: SafetensorsFile[] = [];

  /** Opens `model.safetensors` or the shards that `model.safetensors.index.json` names. */
  constructor(directory: string) {
    try {
      const file = weightsAmong(readdirSync(directory), directory);
      if (file === undefined) throw new Error(`${directory}: neither ${WEIGHTS_FILE} nor ${INDEX_FILE} is there`);
      if (file === WEIGHTS_FILE) this.#openSingle(join(directory, file));
      else this.#openShards(directory, join(directory, file));
    } catch (error) {
      this.close();
      throw error;
    }
    this.files = this.#open.map(file => file.path);
  }

  get names(): string[] {
    return [...this.#owners.keys()];
  }

  /** The tensor's header entry and its file, or undefined. */
  find(name: string): (TensorInfo & { readonly file: string }) | undefined {
    const owner = this.#owners.get(name);
    return owner === undefined ? undefined : { ...owner.tensors.get(name)!, file: owner.path };
  }

  /** The tensor as float32, into `into` (of exactly its size) or a new array. */
  readTensor(name: string, into?: Float32Array): Float32Array {
    const owner = this.#owners.get(name);
    if (owner === undefined) throw new Error(`no tensor ${JSON.stringify(name)} in ${this.files.join(', ')}`);
    return owner.readTensor(name, into);
  }

  close(): void {
    for (const file of this.#open.splice(0)) file.close();
  }

  #openSingle(path: string): void {
    const file = this.#add(path);
    for (const name of file.tensors.keys()) this.#owners.set(name, file);
  }

  #openShards(directory: string, index: string): void {
    const weightMap = readIndex(index);
    const shards = new Map<string, SafetensorsFile>();
    for (const name of new Set(Object.values(weightMap))) {
      const path = join(directory, name);
      if (!existsSync(path)) throw new Error(`${path}: the shard is missing, ${INDEX_FILE} names it; fetch it again`);
      shards.set(name, this.#add(path));
    }
    for (const [tensor, name] of Object.entries(weightMap)) {
      const shard = shards.get(name)!;
      if (!shard.tensors.has(tensor)) {
        throw new Error(
          `${shard.path}: no tensor ${JSON.stringify(tensor)}, though ${INDEX_FILE} places it there; fetch both again`,
        );
      }
      this.#owners.set(tensor, shard);
    }
    for (const shard of shards.values()) {
      for (const tensor of shard.tensors.keys()) {
        if (this.#owners.get(tensor) !== shard) {
          throw new Error(
            `${shard.path}: tensor ${JSON.stringify(tensor)} is not placed there by ${INDEX_FILE}; fetch both again`,
          );
        }
      }
    }
  }

  #add(path: string): SafetensorsFile {
    const file = new SafetensorsFile(path);
    this.#open.push(file);
    return file;
  }
}

/** The map from tensor to shard; every shard lies beside the index. */
export function readIndex(path: string): Record<string, string> {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: not JSON (${(error as Error).message}); fetch it again`, { cause: error });
  }
  const parsed = indexSchema.safeParse(content);
  if (!parsed.success) {
    throw new Error(`${path}: weight_map is not a map from tensor to file name; fetch it again`);
  }
  const shards = new Set(Object.values(parsed.data.weight_map));
  for (const name of shards) {
    const refuse = (reason: string) => {
      throw new Error(`${path}: names the shard ${JSON.stringify(name)} ${reason}; fetch it again`);
    };
    if (basename(name) !== name) refuse('outside of its directory');
    if (!name.endsWith('.safetensors')) refuse('which is no safetensors file');
  }
  return parsed.data.weight_map;
}
