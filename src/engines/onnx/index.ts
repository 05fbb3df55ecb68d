import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { adapterSettings } from '../../nn/checkpoint/adapter.ts';
import { readConfig } from '../../nn/checkpoint/directory.ts';
import { checkMemory } from '../../nn/checkpoint/memory.ts';
import { modelDirectory, type SourceOptions } from '../../nn/checkpoint/source.ts';
import type { Values } from '../../options/option.ts';
import { loadRenderer } from '../../text/chat-renderer.ts';
import { checkVocabulary } from '../../text/tokenizer.ts';
import type { Critic, PolicyEngine } from '../contracts.ts';
import type { Device } from './device.ts';
import type { SamplingDType } from './dtype.ts';
import { OnnxEngine } from './engine.ts';
import type { LoraStart } from './model.ts';
import type { MuonOptions } from './muon.ts';
import type { EngineValues, LoraOptions, separateOptions } from './options.ts';
import type { HostOptions } from './protocol.ts';

export { OnnxEngine } from './engine.ts';
export type { MuonOptions } from './muon.ts';
export { type LoraOptions, loraFromOptions } from './options.ts';

export interface OnnxPolicyOptions {
  /** Directory of a Hugging Face checkpoint, or its name on the hub (`organisation/name`). */
  readonly model: string;
  /** Revision, cache and progress of a model that is fetched from the hub. */
  readonly hub?: SourceOptions | undefined;
  /** False for a model that is only sampled from: the check of its memory then leaves out what training needs. */
  readonly training?: boolean | undefined;
  /** Draws fresh weights where the directory has a configuration but no weights. */
  readonly initSeed?: number | undefined;
  /** Trains a LoRA adapter in place of all weights, or starts from one. */
  readonly lora?: LoraOptions | undefined;
  /** All cores when not given. */
  readonly threads?: number | undefined;
  /** Sampler and learner in worker threads of their own, each with its own weights, so that they work at the same time. */
  readonly separate?: SeparateThreads | undefined;
  /** Where graphs are computed; the CPU when not given. Rejects, with what to do, where that cannot be. */
  readonly device?: Device | undefined;
  /** Sequences decoded together at most; 256 when not given. */
  readonly maxRows?: number | undefined;
  /** Prompt tokens computed at most between two decode steps; 4096 when not given. */
  readonly prefillTokens?: number | undefined;
  /** Memory for keys and values of finished sequences; 256 MiB when not given. */
  readonly prefixCacheBytes?: number | undefined;
  /** What a request gets does not depend, in any bit, on the requests sampled beside it; it does when not given. */
  readonly deterministic?: boolean | undefined;
  /** What matrices are multiplied in when the policy is sampled from; float32 when not given. */
  readonly samplingDtype?: SamplingDType | undefined;
  /** Tokens of a micro-batch, a shared prefix counted once; 4096 when not given. */
  readonly maxTokens?: number | undefined;
  /** Sequences that begin alike share the tokens they begin with in training; they do when not given. */
  readonly treePacking?: boolean | undefined;
  /** Memory for logits while learning; 64 MiB when not given. */
  readonly logitsBytes?: number | undefined;
  /** Activations are computed anew on the way back instead of being kept; not when not given. */
  readonly gradientCheckpointing?: boolean | undefined;
  /** Muon for the matrices inside the layers; AdamW moves everything when not given. */
  readonly muon?: MuonOptions | undefined;
  /** Type of the weights that `export` writes; float32 when not given. */
  readonly saveDtype?: 'float32' | 'bfloat16' | undefined;
  readonly adam?: {
    readonly betas?: readonly [number, number] | undefined;
    readonly eps?: number | undefined;
    readonly weightDecay?: number | undefined;
  };
  /** The global gradient norm is clipped to it; 1 when not given. */
  readonly maxNorm?: number | undefined;
}

/** How many threads each half computes with: what the other leaves, half of `threads` where neither is given. */
export interface SeparateThreads {
  readonly sampler?: number | undefined;
  readonly learner?: number | undefined;
}

/**
 * The embedded engine on one machine. Sampler and learner share one set of weights in one worker thread, or, when they
 * are to be `separate`, have one each and exchange them by copy, between two decode steps.
 */
export async function onnxPolicy(options: OnnxPolicyOptions): Promise<PolicyEngine> {
  const directory = await modelDirectory(options.model, options.hub);
  const renderer = await loadRenderer(directory);
  const { sampler: samplerThreads, learner: learnerThreads } = threadsOf(options);
  const learner = await OnnxEngine.start(hostOptions(directory, { ...options, threads: learnerThreads }));
  let sampler = learner;
  const close = async () => {
    await Promise.all([learner.close(), sampler.close()]);
  };
  try {
    checkVocabulary(renderer, learner.vocabularySize);
    if (options.separate) {
      const served = { ...options, threads: samplerThreads, training: false };
      sampler = await OnnxEngine.start(hostOptions(directory, served));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { colocated: sampler === learner, sampler, learner, renderer, close };
}

function threadsOf({ threads = availableParallelism(), separate }: OnnxPolicyOptions): Required<SeparateThreads> {
  if (separate === undefined) return { sampler: threads, learner: threads };
  const { learner } = separate;
  const sampler = separate.sampler ?? Math.max(1, learner === undefined ? Math.ceil(threads / 2) : threads - learner);
  return { sampler, learner: learner ?? Math.max(1, threads - sampler) };
}

/**
 * A value model in a worker thread of its own. A checkpoint without a value head gets one that says 0 everywhere, on
 * the checkpoint's backbone.
 */
export async function onnxCritic(options: OnnxPolicyOptions): Promise<Critic> {
  const directory = await modelDirectory(options.model, options.hub);
  return OnnxEngine.start(hostOptions(directory, options, 'score'));
}

const MEBIBYTE = 2 ** 20;

/** Of a parameter in the graphs that are sampled from: in int8 two of them hold it. */
const SAMPLER_BYTES = { float32: 4, int8: 2 } as const;

/** Throws when the model cannot fit into memory. */
function hostOptions(directory: string, options: OnnxPolicyOptions, head?: 'score'): HostOptions {
  const {
    initSeed,
    device = 'cpu',
    threads = availableParallelism(),
    training = true,
    maxTokens = 4096,
    adam = {},
  } = options;
  const { samplingDtype } = options;
  if (samplingDtype === 'int8' && device !== 'cpu') {
    throw new Error(`sampling in int8 is for the cpu, and the device is ${device}: leave one of the two out`);
  }
  const lora = options.lora && startOf(options.lora);
  const frozen = lora?.frozen;
  if (frozen !== undefined && device !== 'cpu') {
    throw new Error(`a base in ${frozen} is for the cpu, and the device is ${device}: leave one of the two out`);
  }
  const size = lora && ('directory' in lora ? adapterSettings(lora.directory).lora : lora);
  const copies = head !== 'score' && (frozen === undefined || samplingDtype === 'int8');
  const samplerBytes = copies ? SAMPLER_BYTES[samplingDtype ?? 'float32'] : undefined;
  const { logitsBytes, gradientCheckpointing: recompute } = options;
  const use = { training, maxTokens, samplerBytes, logitsBytes, recompute, lora: size, frozen };
  checkMemory(readConfig(directory).config, use, directory);
  return {
    model: directory,
    ...(head === undefined ? {} : { head }),
    ...(initSeed === undefined ? {} : { initSeed }),
    ...(lora === undefined ? {} : { lora }),
    saveDtype: options.saveDtype,
    sampler: {
      threads,
      device,
      maxRows: options.maxRows ?? 256,
      prefillTokens: options.prefillTokens ?? 4096,
      prefixCacheBytes: options.prefixCacheBytes ?? 256 * MEBIBYTE,
      deterministic: options.deterministic ?? false,
      dtype: samplingDtype,
    },
    learner: {
      threads,
      device,
      maxTokens,
      treePacking: options.treePacking ?? true,
      logitsBytes: options.logitsBytes,
      recompute: options.gradientCheckpointing,
      muon: options.muon,
      betas: adam.betas ?? [0.9, 0.95],
      eps: adam.eps ?? 1e-8,
      weightDecay: adam.weightDecay ?? 0,
      maxNorm: options.maxNorm ?? 1,
    },
  };
}

function startOf(lora: LoraOptions): LoraStart {
  const { frozen } = lora;
  if ('adapter' in lora) return { directory: resolve(lora.adapter), frozen };
  return {
    frozen,
    rank: lora.rank,
    alpha: lora.alpha ?? 16,
    targetModules: lora.targetModules ?? 'all-linear',
    seed: lora.seed ?? 0,
  };
}

/**
 * How the threads are divided, for halves that are not colocated.
 * @throws Error when they are and threads of their own are asked for
 */
export function separateFromOptions(
  values: Values<typeof separateOptions>,
  colocated: boolean,
): SeparateThreads | undefined {
  const { 'engine.sampler_threads': sampler, 'engine.learner_threads': learner } = values;
  if (!colocated) return { sampler, learner };
  if (sampler === undefined && learner === undefined) return undefined;
  throw new Error(
    'engine.sampler_threads and engine.learner_threads have no effect: both share engine.threads; set train.async_enable, or train.colocate_all false',
  );
}

/** The engine's share of the options of a command. */
export function engineFromOptions(values: EngineValues) {
  return {
    threads: values['engine.threads'],
    device: values['engine.device'],
    maxRows: values['engine.max_rows'],
    prefillTokens: values['engine.prefill_tokens'],
    prefixCacheBytes: values['engine.prefix_cache_mb'] * MEBIBYTE,
    deterministic: values['engine.deterministic'],
    maxTokens: values['train.max_tokens_per_gpu'],
    treePacking: values['train.tree_packing_enable'],
    logitsBytes: values['engine.logits_mb'] * MEBIBYTE,
    saveDtype: values['engine.save_dtype'],
  } satisfies Partial<OnnxPolicyOptions>;
}
