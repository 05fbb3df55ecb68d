import { headName } from '../../nn/models/decoder.ts';
import type { DecoderConfig } from '../../nn/models/families.ts';
import { type Parameter, rowBlocks } from '../../nn/models/parameters.ts';

/**
 * The matrix of the vocabulary, handed to graphs in blocks of rows: a graph has the logits of one block at a time. The
 * blocks are views, so that nothing is copied, and the gradient of each is written to its place.
 */
export class HeadBlocks {
  /** The parameter that they are blocks of. */
  readonly matrix: Parameter;
  readonly blocks: readonly Parameter[];
  readonly #views = new WeakMap<Float32Array, Record<string, Float32Array>>();

  /**
   * @param inputs parameters of a language model, the base's under an adapter
   * @param logits of a block at most, for `tokens` predictions; a block has at least one row
   */
  constructor(
    config: DecoderConfig,
    inputs: readonly Parameter[],
    { logits, tokens }: { readonly logits: number; readonly tokens: number },
  ) {
    const name = headName(config);
    this.matrix = inputs.find(parameter => parameter.name === name)!;
    const most = Math.max(1, Math.floor(logits / tokens));
    // Blocks of one size: a small last one would have the cost of a large one.
    const count = Math.ceil(config.vocabSize / most);
    this.blocks = rowBlocks(this.matrix, Math.ceil(config.vocabSize / count));
  }

  /** Parameter → names of its blocks, for `weightInputs`. */
  get names(): ReadonlyMap<string, readonly string[]> {
    return new Map([[this.matrix.name, this.blocks.map(({ name }) => name)]]);
  }

  /** The blocks of the matrix's values, or of what is as large, by name. */
  views(matrix: Float32Array): Record<string, Float32Array> {
    let views = this.#views.get(matrix);
    if (views === undefined) {
      const start = this.matrix.offset;
      views = Object.fromEntries(
        this.blocks.map(({ name, offset, size }) => [name, matrix.subarray(offset - start, offset - start + size)]),
      );
      this.#views.set(matrix, views);
    }
    return views;
  }
}
