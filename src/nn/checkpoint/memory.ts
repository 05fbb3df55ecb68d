import { totalmem } from 'node:os';
import { type FrozenDType, frozenSizes } from '../frozen.ts';
import type { DecoderConfig } from '../models/families.ts';
import { adapterOf, type LoraConfig } from '../models/lora.ts';
import { isMatrixOfLayer, type Parameter, parameterCount, parameterLayout } from '../models/parameters.ts';

/** What a model is loaded for. */
export interface MemoryUse {
  /** Gradient, optimizer and activations are counted as well. */
  readonly training: boolean;
  /** Padded tokens of a micro-batch. */
  readonly maxTokens: number;
  /** The policy is sampled from, and the runtime holds its matrices laid out for that, in so many bytes a parameter. */
  readonly samplerBytes?: number | undefined;
  /** Bytes of one block of logits; 64 MiB when not given. */
  readonly logitsBytes?: number | undefined;
  /** Activations inside layers are computed anew. */
  readonly recompute?: boolean | undefined;
  /** The adapter that is trained in place of all weights. */
  readonly lora?: LoraConfig | undefined;
  /** What the matrices of the frozen layers are kept in; float32 when not given. */
  readonly frozen?: FrozenDType | undefined;
}

/** A need in bytes, by what it is for. */
export type MemoryEstimate = Readonly<Record<string, number>>;

const FLOAT32 = 4;

/**
 * Bytes that a model needs: its weights, in float32 but for a base in few bits, those of an adapter and the sampler's copy; for training the gradient (of a
 * micro-batch and their sum) and the two moments of Adam of what is trained, activations and logits. The last two are rough: what
 * every layer keeps of a token for the way back (about ten vectors of the hidden size and five of the intermediate; or
 * what goes into each layer, and one layer's), without the attention's probabilities, which depend on the length of
 * sequences; and four arrays as large as a block of logits.
 */
export function estimateMemory(config: DecoderConfig, use: MemoryUse): MemoryEstimate {
  const { training, maxTokens, samplerBytes, lora, frozen, logitsBytes = 64 * 2 ** 20, recompute = false } = use;
  const layout = parameterLayout(config);
  const parameters = parameterCount(layout);
  const weights = layout.reduce((bytes, parameter) => bytes + bytesOf(parameter, frozen), 0);
  const adapter = lora && FLOAT32 * parameterCount(adapterOf(layout, lora).layout);
  const sampler = samplerBytes && samplerBytes * parameters;
  const held = { weights, ...(sampler && { sampler }), ...(adapter && { adapter }) };
  if (!training) return held;
  const trained = adapter ?? weights;
  const { layers, hiddenSize, intermediateSize, head, vocabSize } = config;
  const ofLayer = 10 * hiddenSize + 5 * intermediateSize;
  const perToken = recompute ? layers * hiddenSize + ofLayer : layers * ofLayer;
  const block = Math.min(logitsBytes, FLOAT32 * maxTokens * vocabSize);
  return {
    ...held,
    gradients: 2 * trained,
    optimizer: 2 * trained,
    activations: FLOAT32 * maxTokens * perToken,
    ...(head === 'lm' && { logits: 4 * block }),
  };
}

function bytesOf(parameter: Parameter, frozen: FrozenDType | undefined): number {
  if (frozen === undefined || !isMatrixOfLayer(parameter)) return FLOAT32 * parameter.size;
  const [rows, columns] = parameter.shape as [number, number];
  const { values, scales } = frozenSizes(frozen, rows, columns);
  return values + FLOAT32 * scales;
}

/** Memory of the machine, or of the container where that has less; in bytes. */
export function memoryLimit(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** Throws, with the estimate, when the model cannot fit into `limit` bytes. `where` starts the message. */
export function checkMemory(config: DecoderConfig, use: MemoryUse, where: string, limit = memoryLimit()): void {
  const estimate = estimateMemory(config, use);
  const total = Object.values(estimate).reduce((sum, bytes) => sum + bytes, 0);
  if (total <= limit) return;
  const parts = Object.entries(estimate).map(([what, bytes]) => `${what} ${gigabytes(bytes)}`);
  const list = parts.length > 1 ? ` (${parts.join(', ')})` : '';
  throw new Error(
    `${where}: ${use.training ? 'training the model' : 'the model'} needs about ${gigabytes(total)}${list}, and this machine has ${gigabytes(limit)}; take a smaller model${use.training ? `, fewer tokens per micro-batch${use.recompute ? '' : ', gradient checkpointing'}${use.lora ? '' : ', LoRA'}` : ''} or a machine with more memory`,
  );
}

function gigabytes(bytes: number): string {
  const value = bytes / 1e9;
  return `${value >= 1e6 ? value.toExponential(1) : value.toFixed(value < 10 ? 1 : 0)} GB`;
}
