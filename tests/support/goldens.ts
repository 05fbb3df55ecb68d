import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SafetensorsFile } from '../../src/nn/checkpoint/safetensors.ts';

/** The decoder goldens of Transformers and PyTorch; tests/goldens/README.md says what they hold. */

const root = fileURLToPath(new URL('../goldens/decoders/', import.meta.url));

export const GOLDEN_MODELS = readdirSync(root);

/** Checkpoint directory of a golden model. */
export function goldenModel(name: string): string {
  return join(root, name);
}

export interface Golden {
  readonly directory: string;
  readonly sequences: readonly (readonly number[])[];
  readonly predict: readonly (readonly number[])[];
  readonly temperature: number;
  readonly clip: number;
  readonly lm_loss: number;
  readonly ppo_loss: number;
  readonly tensors: ReadonlyMap<string, Float32Array>;
}

export function golden(name: string): Golden {
  return read<Golden>(goldenModel(name));
}

const scores = fileURLToPath(new URL('../goldens/scores/', import.meta.url));

export const SCORE_MODELS = readdirSync(scores);

/** A decoder with a value head. */
export interface ScoreGolden {
  readonly directory: string;
  readonly sequences: readonly (readonly number[])[];
  readonly loss: number;
  readonly tensors: ReadonlyMap<string, Float32Array>;
}

export function scoreGolden(name: string): ScoreGolden {
  return read<ScoreGolden>(join(scores, name));
}

const adapters = fileURLToPath(new URL('../goldens/lora/', import.meta.url));

export const LORA_CASES = readdirSync(adapters);

/** A LoRA adapter of PEFT on one of the golden models. */
export interface LoraGolden {
  /** Of the adapter. */
  readonly directory: string;
  /** Directory of its base. */
  readonly base: string;
  readonly sequences: readonly (readonly number[])[];
  readonly loss: number;
  readonly adamw: {
    readonly lr: number;
    readonly betas: readonly [number, number];
    readonly eps: number;
    readonly weightDecay: number;
    readonly maxNorm: number;
    readonly steps: number;
  };
  readonly tensors: ReadonlyMap<string, Float32Array>;
}

export function loraGolden(name: string): LoraGolden {
  const content = read<LoraGolden>(join(adapters, name));
  return { ...content, base: fileURLToPath(new URL(`../goldens/${content.base}/`, import.meta.url)) };
}

function read<T>(directory: string): T {
  const file = new SafetensorsFile(join(directory, 'golden.safetensors'));
  try {
    const tensors = new Map([...file.tensors.keys()].map(tensor => [tensor, file.readTensor(tensor)]));
    return { directory, tensors, ...JSON.parse(readFileSync(join(directory, 'golden.json'), 'utf8')) };
  } finally {
    file.close();
  }
}
