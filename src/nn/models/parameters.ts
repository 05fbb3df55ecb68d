import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { DecoderConfig } from './families.ts';

/** One matrix or vector of the model: a graph input, a view into the flat weights, and rows of checkpoint tensors. */
export interface Parameter {
  /** Graph input name: `embed`, `layers.0.qkv`, … */
  readonly name: string;
  /** [rows, columns] as in the checkpoint (output features first), or [rows]. */
  readonly shape: readonly number[];
  /** First element in the flat array. */
  readonly offset: number;
  /** In elements. */
  readonly size: number;
  /** Checkpoint tensors stacked along the first axis, in order; their rows add up to `shape[0]`. */
  readonly parts: readonly { readonly tensor: string; readonly rows: number }[];
  /** A matrix: weight decay applies to it where decay spares norms and biases. */
  readonly decay: boolean;
}

/**
 * All parameters in the order of the flat array, without gaps. Projections that read the same input are adjacent
 * and fused: `layers.i.qkv` is [(heads + 2 kvHeads) headDim, hidden] with query, key and value rows in that order,
 * `layers.i.gate_up` is [2 intermediate, hidden]; `layers.i.qk_norm` is [2 headDim], queries first. `lm_head` is absent
 * when the embedding is tied; in its place a model with a value head has `score` [1, hidden].
 */
export function parameterLayout(config: DecoderConfig): Parameter[] {
  const { hiddenSize: hidden, intermediateSize, headDim, vocabSize, biases } = config;
  const queryRows = config.heads * headDim;
  const kvRows = config.kvHeads * headDim;
  const layout: Parameter[] = [];
  let offset = 0;

  /** Adds a parameter whose parts have these rows; `columns` is absent for a vector. */
  const add = (name: string, rows: Readonly<Record<string, number>>, columns?: number) => {
    const parts = Object.entries(rows).map(([tensor, count]) => ({ tensor, rows: count }));
    const total = parts.reduce((sum, part) => sum + part.rows, 0);
    const shape = columns === undefined ? [total] : [total, columns];
    const size = total * (columns ?? 1);
    layout.push({ name, shape, offset, size, parts, decay: columns !== undefined });
    offset += size;
  };

  add('embed', { 'model.embed_tokens.weight': vocabSize }, hidden);
  for (let i = 0; i < config.layers; i++) {
    const layer = `model.layers.${i}`;
    const attention = `${layer}.self_attn`;
    const mlp = `${layer}.mlp`;
    /** A projection, and its bias if it has one; `rows` names the modules whose tensors are stacked. */
    const project = (name: string, rows: Readonly<Record<string, number>>, columns: number, bias: boolean) => {
      const tensors = (kind: string) =>
        Object.fromEntries(Object.entries(rows).map(([module, count]) => [`${module}.${kind}`, count]));
      add(`layers.${i}.${name}`, tensors('weight'), columns);
      if (bias) add(`layers.${i}.${name}_bias`, tensors('bias'));
    };
    const norm = (name: string, tensor: string) =>
      add(`layers.${i}.${name}`, { [`${layer}.${tensor}.weight`]: hidden });

    norm('input_norm', 'input_layernorm');
    const qkv = config.fusedTensors
      ? { [`${attention}.qkv_proj`]: queryRows + 2 * kvRows }
      : { [`${attention}.q_proj`]: queryRows, [`${attention}.k_proj`]: kvRows, [`${attention}.v_proj`]: kvRows };
    project('qkv', qkv, hidden, biases.qkv);
    if (config.qkNorm) {
      add(`layers.${i}.qk_norm`, { [`${attention}.q_norm.weight`]: headDim, [`${attention}.k_norm.weight`]: headDim });
    }
    project('o', { [`${attention}.o_proj`]: hidden }, queryRows, biases.output);
    if (config.sandwichNorms) {
      norm('attention_out_norm', 'post_attention_layernorm');
      norm('mlp_norm', 'pre_feedforward_layernorm');
    } else {
      norm('mlp_norm', 'post_attention_layernorm');
    }
    const gateUp = config.fusedTensors
      ? { [`${mlp}.gate_up_proj`]: 2 * intermediateSize }
      : { [`${mlp}.gate_proj`]: intermediateSize, [`${mlp}.up_proj`]: intermediateSize };
    project('gate_up', gateUp, hidden, biases.mlp);
    project('down', { [`${mlp}.down_proj`]: hidden }, intermediateSize, biases.mlp);
    if (config.sandwichNorms) norm('mlp_out_norm', 'post_feedforward_layernorm');
  }
  add('norm', { 'model.norm.weight': hidden });
  if (config.head === 'score') add('score', { 'score.weight': 1 }, hidden);
  else if (!config.tied) add('lm_head', { 'lm_head.weight': vocabSize }, hidden);
  return layout;
}

/** Number of weights, in elements. */
export function parameterCount(layout: readonly Parameter[]): number {
  const last = layout.at(-1);
  return last === undefined ? 0 : last.offset + last.size;
}

/** One that LoRA can adapt, and that a frozen base may be kept in few bits of. */
export function isMatrixOfLayer({ name, shape }: Pick<Parameter, 'name' | 'shape'>): boolean {
  return name.startsWith('layers.') && shape.length === 2;
}

/** The parameter's elements in a flat array (of weights, gradients, moments …), sharing its memory. */
export function view(flat: Float32Array, parameter: Parameter): Float32Array {
  return flat.subarray(parameter.offset, parameter.offset + parameter.size);
}

/** Blocks of at most `rows` rows of a matrix, as parameters of their own: `name.rows.0`, … */
export function rowBlocks({ name, shape, offset, decay }: Parameter, rows: number): Parameter[] {
  const [total, columns] = shape as [number, number];
  return Array.from({ length: Math.ceil(total / rows) }, (_, i) => {
    const count = Math.min(rows, total - i * rows);
    const size = count * columns;
    return {
      name: `${name}.rows.${i}`,
      shape: [count, columns],
      offset: offset + i * rows * columns,
      size,
      parts: [],
      decay,
    };
  });
}

/** One checkpoint tensor and its place in the flat array. */
export interface TensorPlace {
  readonly tensor: string;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly size: number;
}

/** The checkpoint tensors of a layout, in the order of the flat array. */
export function tensorPlaces(layout: readonly Parameter[]): TensorPlace[] {
  return layout.flatMap(({ shape: [, ...columns], offset, parts }) => {
    let start = offset;
    return parts.map(({ tensor, rows }) => {
      const shape = [rows, ...columns];
      const place = { tensor, shape, offset: start, size: rows * (columns[0] ?? 1) };
      start += place.size;
      return place;
    });
  });
}

/**
 * Fresh weights as Transformers draws them: matrices normal with the config's `initializer_range`, biases 0,
 * norms so that they multiply by 1.
 * The same seed gives the same weights; it is 32-bit.
 */
export function initialise(config: DecoderConfig, layout: readonly Parameter[], seed: number): Float32Array {
  const weights = new Float32Array(parameterCount(layout));
  const random = xoroshiro128plus(seed);
  for (const parameter of layout) {
    const values = view(weights, parameter);
    if (parameter.shape.length > 1) fillNormal(values, config.initializerRange, () => uniformFloat64(random));
    else if (!parameter.name.endsWith('_bias')) values.fill(1 - config.normOffset);
  }
  return weights;
}

/** Box and Muller, "A note on the generation of random normal deviates", 1958. `uniform` is in [0, 1). */
function fillNormal(values: Float32Array, deviation: number, uniform: () => number): void {
  for (let i = 0; i < values.length; i += 2) {
    const radius = deviation * Math.sqrt(-2 * Math.log(1 - uniform()));
    const angle = 2 * Math.PI * uniform();
    values[i] = radius * Math.cos(angle);
    if (i + 1 < values.length) values[i + 1] = radius * Math.sin(angle);
  }
}
