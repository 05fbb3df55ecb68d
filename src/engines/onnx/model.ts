import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openCheckpoint, readConfig } from '../../nn/checkpoint/directory.ts';
import { INDEX_FILE, WEIGHTS_FILE } from '../../nn/checkpoint/shards.ts';
import type { DecoderConfig } from '../../nn/models/families.ts';
import { initialise, type Parameter, parameterLayout, view } from '../../nn/models/parameters.ts';
import { rotaryTables } from '../../nn/models/rope.ts';

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
  readonly #initSeed: number | undefined;
  #reference: Float32Array | undefined;
  readonly #views = new WeakMap<Float32Array, Readonly<Record<string, Float32Array>>>();
  #rotary: { length: number; tables: readonly RotaryTables[] } = { length: 0, tables: [] };

  /** Opens a checkpoint directory. One that has a configuration but no weights gets freshly drawn ones by `initSeed`. */
  constructor(directory: string, initSeed?: number) {
    this.directory = directory;
    this.#initSeed = initSeed;
    const { rawConfig, config, layout, weights } = openModel(directory, initSeed);
    this.rawConfig = rawConfig;
    this.config = config;
    this.layout = layout;
    this.weights = weights;
  }

  /** The weights training started from; read again when first asked for, so that runs without a reference pay nothing. */
  reference(): Float32Array {
    this.#reference ??= openModel(this.directory, this.#initSeed).weights;
    return this.#reference;
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

function openModel(directory: string, initSeed: number | undefined) {
  const stored = existsSync(join(directory, WEIGHTS_FILE)) || existsSync(join(directory, INDEX_FILE));
  if (stored || initSeed === undefined) return openCheckpoint(directory);
  const { config, rawConfig } = readConfig(directory);
  const layout = parameterLayout(config);
  return { config, rawConfig, layout, weights: initialise(config, layout, initSeed) };
}
