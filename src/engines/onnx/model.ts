import type { DecoderConfig } from '../../nn/models/families.ts';
import { type Parameter, view } from '../../nn/models/parameters.ts';
import { rotaryTables } from '../../nn/models/rope.ts';
import { type OpenOptions, openModel } from './open-model.ts';

type RotaryTables = ReturnType<typeof rotaryTables>;

/** The weights that a sampler and a learner of one thread share, and what both derive from the configuration. */
export class Model {
  /** The checkpoint directory it was opened from. */
  readonly directory: string;
  readonly rawConfig: Readonly<Record<string, unknown>>;
  readonly config: DecoderConfig;
  readonly layout: readonly Parameter[];
  /** All parameters, in the layout's order; updated in place. */
  readonly weights: Float32Array;
  /** Number of updates the weights have had. */
  version = 0;
  readonly #opening: OpenOptions;
  #reference: Float32Array | undefined;
  #referenceMoved = false;
  readonly #views = new WeakMap<Float32Array, Readonly<Record<string, Float32Array>>>();
  #rotary: { length: number; tables: readonly RotaryTables[] } = { length: 0, tables: [] };

  /** Opens a checkpoint directory. One that has a configuration but no weights gets freshly drawn ones by `initSeed`. */
  constructor(directory: string, initSeed?: number, head?: OpenOptions['head']) {
    this.directory = directory;
    this.#opening = { initSeed, head };
    const { rawConfig, config, layout, weights } = openModel(directory, this.#opening);
    this.rawConfig = rawConfig;
    this.config = config;
    this.layout = layout;
    this.weights = weights;
  }

  /**
   * The weights training started from, or what `moveReference` made of them; read again when first asked for, so that
   * runs without a reference pay nothing.
   */
  reference(): Float32Array {
    this.#reference ??= openModel(this.directory, this.#opening).weights;
    return this.#reference;
  }

  /** reference ← beta · reference + (1 − beta) · weights */
  moveReference(beta: number): void {
    if (!(beta >= 0 && beta <= 1)) throw new RangeError(`the beta of the reference is ${beta}; expected [0, 1]`);
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

  /** Views of a flat array by parameter name. */
  views(flat: Float32Array): Readonly<Record<string, Float32Array>> {
    let views = this.#views.get(flat);
    if (views === undefined) {
      views = Object.fromEntries(this.layout.map(parameter => [parameter.name, view(flat, parameter)]));
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
