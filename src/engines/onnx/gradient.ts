import type { Node } from '../../nn/graph.ts';
import { type Parameter, parameterCount, view } from '../../nn/models/parameters.ts';
import type { Weights } from '../../nn/models/weights.ts';
import type { HeadBlocks } from './head-blocks.ts';

/** Graph output: the gradient of the rows of the embedding that were read, one for each token. */
const EMBEDDED = 'grad.embedded';

type Arrays = Readonly<Record<string, unknown>>;

/**
 * The gradient of what is trained, summed over micro-batches, as one flat array in the layout's order. Graphs write
 * views of it. The gradient of an embedding comes as one row a token, and is added here: a graph would have to write a
 * whole matrix of mostly zeros, and where the matrix is the vocabulary's too, add two such matrices.
 */
export class Gradient {
  readonly #layout: readonly Parameter[];
  readonly #head: HeadBlocks | undefined;
  /** Where the embedding learns beside a vocabulary. */
  readonly #embed: Parameter | undefined;
  readonly #written: readonly Parameter[];
  /** The sum, and the micro-batch that is added to it; made when first needed. */
  #sum: Float32Array | undefined;
  #scratch: Float32Array | undefined;
  /** True once a micro-batch is part of the sum. */
  #filled = false;

  constructor(layout: readonly Parameter[], head: HeadBlocks | undefined) {
    this.#layout = layout;
    this.#head = head;
    this.#embed = head && layout.find(({ name }) => name === 'embed');
    const whole = layout.filter(parameter => parameter !== this.#embed && parameter.name !== head?.matrix.name);
    const learns = layout.some(({ name }) => name === head?.matrix.name);
    this.#written = learns ? [...whole, ...head!.blocks] : whole;
  }

  get filled(): boolean {
    return this.#filled;
  }

  get sum(): Float32Array {
    this.#sum ??= new Float32Array(parameterCount(this.#layout));
    return this.#sum;
  }

  /** Graph outputs, and the nodes that they are gradients of. */
  wanted(weights: Weights, embedded: Node | undefined): Record<string, Node> {
    const nodes = Object.fromEntries(this.#written.map(({ name }) => [`grad.${name}`, weights(name)]));
    return this.#embed && embedded ? { ...nodes, [EMBEDDED]: embedded } : nodes;
  }

  /** Arrays for the outputs of the next micro-batch. */
  outputs(): Record<string, Float32Array> {
    const target = this.#target();
    return Object.fromEntries(this.#written.map(each => [`grad.${each.name}`, view(target, each)]));
  }

  /** Adds a micro-batch whose graph has written to `outputs()`. */
  add(outputs: Arrays, tokens: BigInt64Array): void {
    const target = this.#target();
    if (this.#embed) {
      const matrix = view(target, this.#embed);
      if (this.#head?.matrix.name !== this.#embed.name) matrix.fill(0);
      addRows(matrix, outputs[EMBEDDED] as Float32Array, tokens);
    }
    if (this.#filled) {
      const sum = this.sum;
      for (let i = 0; i < sum.length; i++) sum[i]! += target[i]!;
    }
    this.#filled = true;
  }

  clear(): void {
    this.#sum?.fill(0);
    this.#filled = false;
  }

  /** Gives its memory back, and says how many bytes that was; for when it is clear. */
  release(): number {
    const bytes = (this.#sum?.byteLength ?? 0) + (this.#scratch?.byteLength ?? 0);
    [this.#sum, this.#scratch] = [undefined, undefined];
    return bytes;
  }

  /** A copy, by parameter name. */
  byName(): Record<string, Float32Array> {
    return Object.fromEntries(this.#layout.map(each => [each.name, view(this.sum, each).slice()]));
  }

  #target(): Float32Array {
    if (!this.#filled) return this.sum;
    this.#scratch ??= new Float32Array(this.sum.length);
    return this.#scratch;
  }
}

function addRows(matrix: Float32Array, rows: Float32Array, tokens: BigInt64Array): void {
  const columns = rows.length / tokens.length;
  for (let n = 0; n < tokens.length; n++) {
    const start = Number(tokens[n]!) * columns;
    for (let i = 0; i < columns; i++) matrix[start + i]! += rows[n * columns + i]!;
  }
}
