import type { Family } from './architectures.ts';
import type { HuggingFaceConfig } from './huggingface.ts';
import { type Rope, type RopeContext, readRope } from './rope.ts';

/**
 * What differs between the layers of one model: how far attention reaches and how positions are marked. Layers are
 * told apart by kinds, so that a graph has one mask and one pair of rotary tables per kind, not per layer.
 */
export interface LayerKinds {
  /** Kinds of attention: a token attends to itself and the window − 1 tokens before it; null: to all before it. */
  readonly windows: readonly (number | null)[];
  /** Kinds of rotary embedding. */
  readonly ropes: readonly Rope[];
  /** For each layer, places in `windows` and `ropes`; rope is null where positions are not marked. */
  readonly layerKinds: readonly { readonly window: number; readonly rope: number | null }[];
  /** Longest sequence in tokens. */
  readonly maxPositions: number;
}

/** Name of the graph input for one kind: the bare name for the first, `name.1`, `name.2`, … for the others. */
export function kindInput(name: string, kind: number): string {
  return kind === 0 ? name : `${name}.${kind}`;
}

/** Reads what `config` says about its layers. `headDim` in elements; `where` starts error messages. */
export function layerKinds(config: HuggingFaceConfig, family: Family, headDim: number, where: string): LayerKinds {
  const slides = slidingLayers(config, family, where);
  const rotates = rotatingLayers(config, family, where);
  const ropes: Rope[] = [];
  let maxPositions = config.max_position_embeddings;
  const addRope = (local: boolean) => {
    const { rope, positions } = readRope(...ropeParameters(config, family, headDim, local, where));
    maxPositions = Math.min(maxPositions, positions);
    return ropes.push(rope) - 1;
  };
  // The local kind differs from the global one only where the family has a base of its own for it.
  const kinds = new Map<boolean, number>();
  const ropeOf = (sliding: boolean) => {
    const local = sliding && family.localTheta !== undefined;
    if (!kinds.has(local)) kinds.set(local, addRope(local));
    return kinds.get(local)!;
  };
  const ropeKinds = slides.map((sliding, layer) => (rotates[layer] ? ropeOf(sliding) : null));
  // A window that no sequence outgrows is none.
  const window = config.sliding_window != null && config.sliding_window < maxPositions ? config.sliding_window : null;
  const reach = slides.map(sliding => (sliding ? window : null));
  const windows = [...new Set(reach)];
  return {
    windows,
    ropes,
    layerKinds: reach.map((width, layer) => ({ window: windows.indexOf(width), rope: ropeKinds[layer]! })),
    maxPositions,
  };
}

/** For each layer, whether it sees only the window. */
function slidingLayers(config: HuggingFaceConfig, family: Family, where: string): boolean[] {
  const { num_hidden_layers: layers, layer_types: types, sliding_window: window } = config;
  const rule = Array.from({ length: layers }, (_, layer) => family.slides?.(config, layer) ?? false);
  const odd = types?.find(type => type !== 'full_attention' && type !== 'sliding_attention');
  if (odd !== undefined) {
    throw new Error(`${where}: layer_types has ${JSON.stringify(odd)}; known are full_attention, sliding_attention`);
  }
  if (types != null && types.length !== layers) {
    throw new Error(`${where}: layer_types has ${types.length} entries for ${layers} layers`);
  }
  const slides = types?.map(type => type === 'sliding_attention') ?? rule;
  if (!family.layerTypes && String(slides) !== String(rule)) {
    throw new Error(
      `${where}: layer_types is ${JSON.stringify(types)}; in a ${config.model_type} model ${rule.includes(true) ? 'every layer slides' : 'no layer slides'} (sliding_window ${window ?? null})`,
    );
  }
  if (!family.slides && window != null && window < config.max_position_embeddings) {
    throw new Error(`${where}: sliding_window is ${window}; a ${config.model_type} model has no window`);
  }
  if (slides.includes(true) && (window == null || (family.windowSwitch && !config.use_sliding_window))) {
    throw new Error(
      `${where}: some layers slide, but sliding_window is ${window ?? null} and use_sliding_window is ${config.use_sliding_window ?? null}; give the window or change layer_types`,
    );
  }
  return slides;
}

function rotatingLayers(config: HuggingFaceConfig, family: Family, where: string): boolean[] {
  const { num_hidden_layers: layers, no_rope_layers: given } = config;
  if (given != null && (family.rotates === undefined || given.length < layers)) {
    throw new Error(
      `${where}: no_rope_layers is ${JSON.stringify(given)}; ${family.rotates ? `${layers} layers need as many entries` : `a ${config.model_type} model has no such layers`}`,
    );
  }
  return Array.from({ length: layers }, (_, layer) => family.rotates?.(config, layer) ?? true);
}

/** The rope parameters of one kind, joined from the places where versions of Transformers keep them. */
function ropeParameters(
  config: HuggingFaceConfig,
  family: Family,
  headDim: number,
  local: boolean,
  where: string,
): [Record<string, unknown>, RopeContext] {
  const { rope_parameters: parameters, rope_scaling: scaling, partial_rotary_factor: partial } = config;
  const nested = family.localTheta !== undefined;
  const key = local ? 'sliding_attention' : 'full_attention';
  const unknown = nested && Object.keys(parameters ?? {}).find(k => !/^(full|sliding)_attention$/.test(k));
  if (unknown) {
    throw new Error(
      `${where}: rope_parameters.${unknown} is ${JSON.stringify(parameters![unknown])}; a ${config.model_type} model has full_attention and sliding_attention there`,
    );
  }
  if (!nested && parameters != null && scaling != null) {
    throw new Error(
      `${where}: rope_parameters and rope_scaling are both given; the latter is the older form: remove it`,
    );
  }
  const own = (nested ? (parameters?.[key] ?? {}) : (parameters ?? {})) as Record<string, unknown>;
  const merged: Record<string, unknown> = {
    rope_theta: local ? config.rope_local_base_freq : config.rope_theta,
    ...(partial == null ? {} : { partial_rotary_factor: partial }),
    ...own,
    ...(local ? {} : scaling),
  };
  const name = scaling && !local ? 'rope_scaling' : nested ? `rope_parameters.${key}` : 'rope_parameters';
  if (merged.partial_rotary_factor != null && merged.partial_rotary_factor !== 1 && !family.partialRotary) {
    throw new Error(
      `${where}: partial_rotary_factor is ${JSON.stringify(merged.partial_rotary_factor)}; a ${config.model_type} model rotates whole heads`,
    );
  }
  takeTrainedLength(merged, config, where);
  const theta = (local ? family.localTheta : family.theta) ?? 10_000;
  return [merged, { headDim, maxPositions: config.max_position_embeddings, theta, where: `${where}: ${name}` }];
}

/** Phi-3 keeps the trained length beside the parameters. */
function takeTrainedLength(merged: Record<string, unknown>, config: HuggingFaceConfig, where: string): void {
  const field = 'original_max_position_embeddings';
  const beside = config[field];
  const type = merged.rope_type ?? merged.type;
  if (beside == null || type === undefined || type === null || type === 'default') return;
  if (merged[field] != null && merged[field] !== beside) {
    throw new Error(`${where}: ${field} is ${beside}, but ${JSON.stringify(merged[field])} among the rope parameters`);
  }
  if (['llama3', 'yarn', 'longrope', 'su'].includes(String(type))) merged[field] = beside;
}
