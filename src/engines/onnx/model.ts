import { type AdapterBase, baseDigest, readAdapter } from '../../nn/checkpoint/adapter.ts';
import { type FrozenDType, type FrozenMatrix, thaw } from '../../nn/frozen.ts';
import type { DecoderConfig } from '../../nn/models/families.ts';
import { frozenInputs } from '../../nn/models/frozen-base.ts';
import { type Adapter, adapterOf, initialiseAdapter, type LoraConfig } from '../../nn/models/lora.ts';
import { type Parameter, type TensorPlace, view } from '../../nn/models/parameters.ts';
import { rotaryTables } from '../../nn/models/rope.ts';
import { type OpenOptions, openModel, openModelTensors } from './open-model.ts';
import { readFrozen } from './read-frozen.ts';

type RotaryTables = ReturnType<typeof rotaryTables>;

/**
 * A new adapter, drawn by a 32-bit seed, or the directory of one in the layout of PEFT to go on from. The matrices of the
 * layers of its base are kept in `frozen`, in float32 without it.
 */
export type LoraStart = ((LoraConfig & { readonly seed: number }) | { readonly directory: string }) & {
  readonly frozen?: FrozenDType | undefined;
};

/** Parameters by name, and what graphs read in place of those that are kept in few bits. */
export type Views = Readonly<Record<string, Float32Array | Int8Array | Uint8Array>>;

/** The weights that a sampler and a learner of one thread share, and what both derive from the configuration. */
export class Model {
  /** The checkpoint directory it was opened from. */
  readonly directory: string;
  readonly rawConfig: Readonly<Record<string, unknown>>;
  readonly config: DecoderConfig;
  /** Of what is trained: of the checkpoint, or of the adapter. */
  readonly layout: readonly Parameter[];
  /** All trained parameters, in the layout's order; updated in place. */
  readonly weights: Float32Array;
  /** Every parameter that graphs know: the layout's, and those of the base that stay as they are. */
  readonly inputs: readonly Parameter[];
  /** What is trained in place of the checkpoint's own weights. Those of a base in few bits are read anew each time. */
  readonly adapter: (Adapter & { readonly base: AdapterBase }) | undefined;
  /** What the matrices of the base's layers are kept in where that is not float32. */
  readonly frozen: FrozenDType | undefined;
  /** Number of updates the weights have had. */
  version = 0;
  readonly #source: OpenOptions;
  readonly #base: Views;
  readonly #matrices: ReadonlyMap<string, FrozenMatrix>;
  readonly #initial: () => Float32Array;
  #reference: Float32Array | undefined;
  #referenceMoved = false;
  #average: Float32Array | undefined;
  #digest: string | undefined;
  readonly #views = new WeakMap<Float32Array, Views>();
  #rotary: { length: number; tables: readonly RotaryTables[] } = { length: 0, tables: [] };

  /**
   * Opens a checkpoint directory. One that has a configuration but no weights gets freshly drawn ones by `initSeed`.
   * With `lora` its weights are frozen, and an adapter is trained.
   */
  constructor(directory: string, initSeed?: number, head?: OpenOptions['head'], lora?: LoraStart) {
    this.directory = directory;
    this.#source = { initSeed, head };
    const open = () => openModel(directory, this.#source);
    this.frozen = lora?.frozen;
    if (lora?.frozen !== undefined) {
      const { rawConfig, config, layout, matrices, whole, digest } = readFrozen(directory, this.#source, lora.frozen);
      [this.rawConfig, this.config, this.#matrices, this.#digest] = [rawConfig, config, matrices, digest];
      const base = {
        directory,
        layout,
        digest,
        get weights() {
          return open().weights;
        },
      };
      const { adapter, initial } = startAdapter(lora, base);
      [this.adapter, this.layout, this.#initial] = [{ ...adapter, base }, adapter.layout, initial];
      this.#base = { ...whole, ...frozenInputs(matrices) };
      this.inputs = withoutTrained(layout, adapter);
      this.weights = initial();
      return;
    }
    const { rawConfig, config, layout, weights } = open();
    [this.rawConfig, this.config, this.#matrices] = [rawConfig, config, new Map()];
    if (lora === undefined) {
      [this.layout, this.weights, this.inputs, this.#base] = [layout, weights, layout, {}];
      this.#initial = () => open().weights;
      return;
    }
    const base = { directory, layout, weights };
    const { adapter, initial } = startAdapter(lora, base);
    [this.adapter, this.layout, this.#initial] = [{ ...adapter, base }, adapter.layout, initial];
    this.#base = viewsOf(layout, weights);
    this.inputs = withoutTrained(layout, adapter);
    this.weights = initial();
  }

  /** Lets `use` read tensors of the base of the adapter. */
  async readBase<T>(use: (read: (place: TensorPlace) => Float32Array) => Promise<T>): Promise<T> {
    if (this.frozen === undefined) {
      const { weights } = this.adapter!.base;
      return use(({ offset, size }) => weights.subarray(offset, offset + size));
    }
    const tensors = openModelTensors(this.directory, this.#source);
    try {
      return await use(place => tensors.read(place));
    } finally {
      tensors.close();
    }
  }

  /**
   * The weights training started from, or what `moveReference` made of them; read again when first asked for, so that
   * runs without a reference pay nothing. With an adapter it is one as well, on the same base.
   */
  reference(): Float32Array {
    this.#reference ??= this.#initial();
    return this.#reference;
  }

  /** reference ← beta · reference + (1 − beta) · weights */
  moveReference(beta: number): void {
    if (!(beta >= 0 && beta <= 1)) throw new RangeError(`the beta of the reference is ${beta}; expected [0, 1]`);
    if (this.adapter && beta > 0 && beta < 1) {
      throw new Error(
        `the reference cannot keep a share of ${beta} under LoRA: the mean of two adapters is none of the same rank; let it copy the policy (beta 0) or train all weights`,
      );
    }
    const reference = this.reference();
    for (let i = 0; i < reference.length; i++) reference[i] = beta * reference[i]! + (1 - beta) * this.weights[i]!;
    this.#referenceMoved = true;
  }

  /** The reference where it was moved: what a checkpoint must keep of it. */
  get movedReference(): Float32Array | undefined {
    return this.#referenceMoved ? this.#reference : undefined;
  }

  /** Puts back what `movedReference` gave. */
  set movedReference(reference: Float32Array | undefined) {
    this.#reference = reference;
    this.#referenceMoved = reference !== undefined;
  }

  /** average ← beta · average + (1 − beta) · weights; the average begins as the weights that training started from. */
  updateAverage(beta: number): void {
    if (!(beta >= 0 && beta < 1)) throw new RangeError(`the beta of the average is ${beta}; expected [0, 1)`);
    this.#average ??= this.#initial();
    const average = this.#average;
    for (let i = 0; i < average.length; i++) average[i] = beta * average[i]! + (1 - beta) * this.weights[i]!;
  }

  /** Exchanges the weights and the average, in place. */
  swapAverage(): void {
    this.#average ??= this.#initial();
    const [weights, average] = [this.weights, this.#average];
    for (let i = 0; i < average.length; i++) {
      const weight = weights[i]!;
      weights[i] = average[i]!;
      average[i] = weight;
    }
  }

  /** The average where there is one: what a checkpoint must keep of it. */
  get average(): Float32Array | undefined {
    return this.#average;
  }

  set average(average: Float32Array | undefined) {
    this.#average = average;
  }

  /** What tells the base of the adapter from others; it is computed once, for the base never changes. */
  get baseDigest(): string | undefined {
    if (this.adapter) this.#digest ??= baseDigest(this.adapter.base);
    return this.#digest;
  }

  /** A matrix of a layer of the base that is kept in few bits: what it stands for, [rows · columns]. */
  thawed(name: string): Float32Array {
    const { shape, size } = this.inputs.find(parameter => parameter.name === name)!;
    return thaw(this.#matrices.get(name)!, shape[1]!, size);
  }

  /** What graphs read, by name, the parameters of the layout as views of a flat array. */
  views(flat: Float32Array): Views {
    let views = this.#views.get(flat);
    if (views === undefined) {
      views = { ...this.#base, ...viewsOf(this.layout, flat) };
      this.#views.set(flat, views);
    }
    return views;
  }

  /** Rotary tables of at least `length` positions, [≥ length, R/2] each, for each kind of `config.ropes`. */
  rotary(length: number): readonly RotaryTables[] {
    if (length > this.#rotary.length) {
      const grown = Math.min(this.config.maxPositions, Math.max(length, 2 * this.#rotary.length, 256));
      this.#rotary = { length: grown, tables: this.config.ropes.map(rope => rotaryTables(rope, grown)) };
    }
    return this.#rotary.tables;
  }
}

/** What graphs know of an adapter and its base. */
function withoutTrained(base: readonly Parameter[], { layout }: Adapter): Parameter[] {
  const trained = new Set(layout.map(({ name }) => name));
  return [...base.filter(({ name }) => !trained.has(name)), ...layout];
}

function viewsOf(layout: readonly Parameter[], flat: Float32Array): Record<string, Float32Array> {
  return Object.fromEntries(layout.map(parameter => [parameter.name, view(flat, parameter)]));
}

/** The adapter, and what makes its first values, each time anew. */
function startAdapter(lora: LoraStart, base: AdapterBase): { adapter: Adapter; initial: () => Float32Array } {
  if ('directory' in lora) {
    const { adapter, weights } = readAdapter(lora.directory, base);
    return { adapter, initial: () => weights.slice() };
  }
  const adapter = adapterOf(base.layout, lora);
  return { adapter, initial: () => initialiseAdapter(adapter, base, lora.seed) };
}
