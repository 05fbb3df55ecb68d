/**
 * Rotary position embedding (RoFormer, arXiv 2104.09864) and its scalings: the frequencies that a `config.json` asks
 * for, and the tables of cosines and sines that graphs are fed with.
 */

/** One kind of rotary embedding; a model may have several, one for each kind of layer. */
export interface Rope {
  /** Radians per position; the first 2 · `frequencies.length` elements of every head are rotated. */
  readonly frequencies: readonly number[];
  /** Factor on cosines and sines: the attention factor of YaRN and LongRoPE, else 1. */
  readonly scale: number;
}

export interface RopeContext {
  /** Elements of a head. */
  readonly headDim: number;
  readonly maxPositions: number;
  /** The base where the parameters give none. */
  readonly theta: number;
  /** Starts error messages, e.g. `config.json: rope_parameters`. */
  readonly where: string;
}

type Parameters = Readonly<Record<string, unknown>>;

/** What each type reads beside its name, the base and the rotated share. Anything else is refused. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  default: [],
  linear: ['factor'],
  dynamic: ['factor'],
  llama3: ['factor', 'low_freq_factor', 'high_freq_factor', 'original_max_position_embeddings'],
  yarn: [
    'factor',
    'attention_factor',
    'beta_fast',
    'beta_slow',
    'mscale',
    'mscale_all_dim',
    'truncate',
    'original_max_position_embeddings',
  ],
  longrope: ['short_factor', 'long_factor', 'factor', 'attention_factor', 'original_max_position_embeddings'],
};
const ALWAYS = ['rope_type', 'type', 'rope_theta', 'partial_rotary_factor'];

/**
 * Frequencies as Transformers computes them from `rope_parameters` (or `rope_scaling`, its older form).
 *
 * Two types depend on the length of the sequence. `dynamic` is unscaled, and `longrope` uses its short factors, up to
 * the length the model was trained with; only that range is supported, and `positions` says where it ends.
 */
export function readRope(parameters: Parameters, context: RopeContext): { rope: Rope; positions: number } {
  const { headDim, maxPositions, where } = context;
  const type = typeName(parameters, where);
  for (const [key, value] of Object.entries(parameters)) {
    if (value === null || ALWAYS.includes(key) || FIELDS[type]!.includes(key)) continue;
    throw new Error(`${where}.${key} is ${JSON.stringify(value)}, which the rope type "${type}" does not have`);
  }
  const number = (key: string, fallback?: number) => positiveNumber(parameters, key, where, fallback);
  const theta = number('rope_theta', context.theta);
  const dims = Math.trunc(headDim * number('partial_rotary_factor', 1));
  if (dims % 2 !== 0 || dims > headDim) {
    throw new Error(
      `${where}: ${dims} elements of a head of ${headDim} would be rotated (head_dim · partial_rotary_factor); an even number up to head_dim is needed`,
    );
  }
  const plain = Array.from({ length: dims / 2 }, (_, i) => theta ** ((-2 * i) / dims));
  const rope = (frequencies: readonly number[], scale = 1) => ({
    rope: { frequencies, scale },
    positions: maxPositions,
  });
  const trained = () => number('original_max_position_embeddings');
  switch (type) {
    case 'default':
      return rope(plain);
    case 'dynamic':
      number('factor');
      return rope(plain);
    case 'linear': {
      const factor = number('factor');
      return rope(plain.map(frequency => frequency / factor));
    }
    case 'llama3': {
      const [low, high] = [number('low_freq_factor'), number('high_freq_factor')];
      if (!(low < high)) throw new Error(`${where}: low_freq_factor ${low} is not below high_freq_factor ${high}`);
      return rope(llama3(plain, number('factor'), low, high, trained()));
    }
    case 'yarn': {
      const range = yarnRange(parameters, where, theta, dims, trained());
      return rope(yarn(plain, number('factor'), range), yarnScale(parameters, where));
    }
    default: {
      const length = trained();
      const factor = number('factor', maxPositions / length);
      const scale = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(length));
      const short = factors(parameters, 'short_factor', dims / 2, where);
      factors(parameters, 'long_factor', dims / 2, where);
      const scaled = rope(
        plain.map((frequency, i) => frequency / short[i]!),
        number('attention_factor', scale),
      );
      return { ...scaled, positions: Math.min(maxPositions, length) };
    }
  }
}

function typeName(parameters: Parameters, where: string): string {
  const named = parameters.rope_type ?? parameters.type ?? 'default';
  // The first Phi-3 checkpoints call it so.
  const type = named === 'su' ? 'longrope' : named;
  if (typeof type === 'string' && Object.hasOwn(FIELDS, type)) return type;
  throw new Error(`${where}: the rope type is ${JSON.stringify(named)}; known are ${Object.keys(FIELDS).join(', ')}`);
}

function positiveNumber(parameters: Parameters, key: string, where: string, fallback?: number): number {
  const value = parameters[key] ?? fallback;
  if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value;
  throw new Error(`${where}.${key} is ${JSON.stringify(value)}; expected a number above 0`);
}

function factors(parameters: Parameters, key: string, length: number, where: string): number[] {
  const values = parameters[key];
  if (
    Array.isArray(values) &&
    values.length === length &&
    values.every(value => typeof value === 'number' && value > 0)
  )
    return values;
  throw new Error(`${where}.${key} is ${JSON.stringify(values)}; expected ${length} numbers above 0`);
}

/** Llama 3.1: wavelengths beyond the trained length are stretched, short ones kept, those between blended. */
function llama3(plain: readonly number[], factor: number, low: number, high: number, trained: number): number[] {
  return plain.map(frequency => {
    const turns = (trained * frequency) / (2 * Math.PI);
    const kept = Math.min(1, Math.max(0, (turns - low) / (high - low)));
    return ((1 - kept) * frequency) / factor + kept * frequency;
  });
}

/** YaRN (arXiv 2309.00071), section 3.2: a ramp over the frequencies' indices between stretched and kept. */
function yarn(plain: readonly number[], factor: number, [first, last]: readonly [number, number]): number[] {
  return plain.map((frequency, i) => {
    const stretched = Math.min(1, Math.max(0, (i - first) / (last - first)));
    return (stretched * frequency) / factor + (1 - stretched) * frequency;
  });
}

/** Indices of the frequencies that turn `beta_fast` and `beta_slow` times over the trained length. */
function yarnRange(
  parameters: Parameters,
  where: string,
  theta: number,
  dims: number,
  trained: number,
): readonly [number, number] {
  const index = (turns: number) => (dims * Math.log(trained / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  let first = index(positiveNumber(parameters, 'beta_fast', where, 32));
  let last = index(positiveNumber(parameters, 'beta_slow', where, 1));
  if (parameters.truncate !== false) {
    first = Math.floor(first);
    last = Math.ceil(last);
  }
  first = Math.max(first, 0);
  last = Math.min(last, dims - 1);
  return [first, first === last ? last + 0.001 : last];
}

function yarnScale(parameters: Parameters, where: string): number {
  const number = (key: string, fallback?: number) => positiveNumber(parameters, key, where, fallback);
  const factor = number('factor');
  const scale = (weight: number) => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1);
  const weighted = parameters.mscale && parameters.mscale_all_dim;
  return number('attention_factor', weighted ? scale(number('mscale')) / scale(number('mscale_all_dim')) : scale(1));
}

/**
 * Tables for positions 0 … length−1: cos and sin, [length, frequencies] each. Angles are rounded to float32 as in
 * PyTorch: at position 100 000 that rounding is worth 0.004 radians, and models were trained with it.
 */
export function rotaryTables(rope: Rope, length: number): { cos: Float32Array; sin: Float32Array } {
  const count = rope.frequencies.length;
  const cos = new Float32Array(length * count);
  const sin = new Float32Array(length * count);
  rope.frequencies.forEach((exact, i) => {
    const frequency = Math.fround(exact);
    for (let position = 0; position < length; position++) {
      const angle = Math.fround(position * frequency);
      cos[position * count + i] = Math.cos(angle) * rope.scale;
      sin[position * count + i] = Math.sin(angle) * rope.scale;
    }
  });
  return { cos, sin };
}
