import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { type Node, scalar } from '../graph.ts';
import { add, concat, full, gemm, linear, mul, slice } from '../ops.ts';
import { isMatrixOfLayer, type Parameter, parameterCount, type TensorPlace, tensorPlaces, view } from './parameters.ts';

/**
 * Low-rank adapters (Hu et al., "LoRA", 2021): a frozen matrix W [out, in] acts as W + alpha / rank · B A with trained
 * A [rank, in] and B [out, rank]. Tensors are named as in PEFT's adapter files.
 */

export interface LoraConfig {
  /** ≥ 1 */
  readonly rank: number;
  /** > 0; B A is multiplied by alpha / rank. */
  readonly alpha: number;
  /** Last names of the modules that are adapted (`q_proj`), or every linear layer of the blocks. */
  readonly targetModules: 'all-linear' | readonly string[];
}

/** What an adapter adds to one base model. */
export interface Adapter extends LoraConfig {
  readonly targetModules: readonly string[];
  /**
   * Of the trained parameters. For a base parameter of fused parts, `layers.i.qkv`, there is `layers.i.qkv.lora_a`
   * [parts · rank, in], so that one product serves them all, and for each part `layers.i.qkv.lora_b.j` [rows, rank];
   * j counts the parts of the base, whether adapted or not. A value head is trained whole, under its own name.
   */
  readonly layout: readonly Parameter[];
  /** Base parameter → its parts in order. */
  readonly projections: ReadonlyMap<string, readonly { readonly rows: number; readonly adapted: boolean }[]>;
}

/** Beginning of the names that PEFT gives to what lies in the base model. */
const PREFIX = 'base_model.model.';
const moduleOf = (tensor: string) => tensor.replace(/\.weight$/, '');
const lastName = (tensor: string) => moduleOf(tensor).split('.').at(-1)!;
const tensorName = (tensor: string, factor: 'A' | 'B') => `${PREFIX}${moduleOf(tensor)}.lora_${factor}.weight`;

/** The module that a tensor of an adapter file belongs to, by its last name, or undefined where it is no factor. */
export function adaptedModule(tensor: string): string | undefined {
  return /([^.]+)\.lora_[AB]\.weight$/.exec(tensor)?.[1];
}

/** The adapter of a base model. Throws for a module that the model does not have, with the list of those it has. */
export function adapterOf(base: readonly Parameter[], { rank, alpha, targetModules }: LoraConfig): Adapter {
  if (!(Number.isInteger(rank) && rank >= 1))
    throw new RangeError(`the rank of a LoRA adapter is ${rank}; give 1 or more`);
  if (!(alpha > 0 && Number.isFinite(alpha)))
    throw new RangeError(`the alpha of a LoRA adapter is ${alpha}; give a number above 0`);
  const linears = base.filter(isMatrixOfLayer);
  const known = [...new Set(linears.flatMap(({ parts }) => parts.map(({ tensor }) => lastName(tensor))))];
  const named = targetModules === 'all-linear' ? known : targetModules;
  const targets = known.filter(name => named.includes(name));
  const unknown = named.find(name => !known.includes(name));
  if (unknown !== undefined || targets.length === 0) {
    throw new Error(
      `${unknown === undefined ? 'no target module is given' : `the target module ${unknown} is not in the model`}; its linear layers are ${known.join(', ')}, and all-linear stands for all of them`,
    );
  }

  const layout: Parameter[] = [];
  const append = (name: string, columns: number, parts: Parameter['parts']) => {
    const rows = parts.reduce((sum, part) => sum + part.rows, 0);
    layout.push({
      name,
      shape: [rows, columns],
      offset: parameterCount(layout),
      size: rows * columns,
      parts,
      decay: true,
    });
  };
  const projections = new Map<string, { rows: number; adapted: boolean }[]>();
  for (const { name, shape, parts } of linears) {
    const split = parts.map(part => ({ ...part, adapted: targets.includes(lastName(part.tensor)) }));
    const adapted = split.filter(part => part.adapted);
    if (adapted.length === 0) continue;
    projections.set(name, split);
    append(
      lowerName(name),
      shape[1]!,
      adapted.map(({ tensor }) => ({ tensor: tensorName(tensor, 'A'), rows: rank })),
    );
    for (const [j, { tensor, rows, adapted }] of split.entries()) {
      if (adapted) append(upperName(name, j), rank, [{ tensor: tensorName(tensor, 'B'), rows }]);
    }
  }
  const head = base.find(({ name }) => name === 'score');
  if (head)
    append(
      head.name,
      head.shape[1]!,
      head.parts.map(({ tensor, rows }) => ({ tensor: PREFIX + tensor, rows })),
    );
  return { rank, alpha, targetModules: targets, layout, projections };
}

const lowerName = (projection: string) => `${projection}.lora_a`;
const upperName = (projection: string, part: number) => `${projection}.lora_b.${part}`;

/** y [N, out], the projection of x [N, in] by the base parameter `name`, and what the adapter adds to it. */
export function adapt(adapter: Adapter, weights: (name: string) => Node, name: string, x: Node, y: Node): Node {
  const parts = adapter.projections.get(name);
  if (parts === undefined) return y;
  const { rank, alpha } = adapter;
  const lowered = mul(linear(x, weights(lowerName(name))), scalar(alpha / rank));
  let used = 0;
  const added = parts.map(({ rows, adapted }, j) => {
    if (!adapted) return full(0, [y.shape[0]!, rows]);
    const own = slice(lowered, 1, used, used + rank);
    used += rank;
    return linear(own, weights(upperName(name, j)));
  });
  return add(y, concat(added, 1));
}

/** The base parameter `name` [out, in] with what the adapter adds to it: W + alpha / rank · B A. */
export function mergedWeight(adapter: Adapter, weights: (name: string) => Node, name: string): Node {
  const base = weights(name);
  const parts = adapter.projections.get(name);
  if (parts === undefined) return base;
  const { rank, alpha } = adapter;
  const lower = weights(lowerName(name));
  let used = 0;
  const added = parts.map(({ rows, adapted }, j) => {
    if (!adapted) return full(0, [rows, base.shape[1]!]);
    const own = slice(lower, 0, used, used + rank);
    used += rank;
    return gemm(weights(upperName(name, j)), own, { transA: false, transB: false });
  });
  return add(base, mul(concat(added, 0), scalar(alpha / rank)));
}

/**
 * The trained parameters at first, as PEFT draws them: A uniform in ±1/√in (He et al. 2015 with a = √5), B zero, so that the
 * adapter changes nothing; a value head as in the base. The same seed gives the same values; it is 32-bit.
 */
export function initialiseAdapter(
  { layout }: Adapter,
  base: { readonly layout: readonly Parameter[]; readonly weights: Float32Array },
  seed: number,
): Float32Array {
  const weights = new Float32Array(parameterCount(layout));
  const random = xoroshiro128plus(seed);
  for (const parameter of layout) {
    const values = view(weights, parameter);
    const own = base.layout.find(({ name }) => name === parameter.name);
    if (own) values.set(view(base.weights, own));
    if (!parameter.name.endsWith('.lora_a')) continue;
    const bound = 1 / Math.sqrt(parameter.shape[1]!);
    for (let i = 0; i < values.length; i++) values[i] = bound * (2 * uniformFloat64(random) - 1);
  }
  return weights;
}

/**
 * Reads tensors of the base with the adapter merged into them: W + alpha / rank · B A, summed in float64.
 * @param base in its layout's order, or what reads a tensor of it
 */
export function mergedTensors(
  adapter: Adapter,
  weights: Float32Array,
  base: Float32Array | ((place: TensorPlace) => Float32Array),
): (place: TensorPlace) => Float32Array {
  const places = new Map(tensorPlaces(adapter.layout).map(place => [place.tensor, place]));
  const trained = (tensor: string) => {
    const place = places.get(tensor);
    return place && weights.subarray(place.offset, place.offset + place.size);
  };
  const { rank, alpha } = adapter;
  return place => {
    const { tensor, shape, offset, size } = place;
    const stored = typeof base === 'function' ? base(place) : base.subarray(offset, offset + size);
    const lower = trained(tensorName(tensor, 'A'));
    const upper = trained(tensorName(tensor, 'B'));
    if (lower === undefined || upper === undefined) return trained(PREFIX + tensor) ?? stored;
    const [rows, columns] = shape as [number, number];
    const merged = new Float32Array(size);
    const sum = new Float64Array(columns);
    for (let row = 0; row < rows; row++) {
      sum.set(stored.subarray(row * columns, (row + 1) * columns));
      for (let k = 0; k < rank; k++) {
        const factor = (alpha / rank) * upper[row * rank + k]!;
        for (let i = 0; i < columns; i++) sum[i]! += factor * lower[k * columns + i]!;
      }
      merged.set(sum, row * columns);
    }
    return merged;
  };
}
