/** Learning-rate-free settings of AdamW, named and defaulted as in PyTorch. */
export interface AdamWOptions {
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
  /** Ranges of the flat array that weight decay spares (`decay: false`); a parameter layout fits. Default: none. */
  readonly decayMask?: readonly { readonly offset: number; readonly size: number; readonly decay: boolean }[];
  /** Ranges that something else moves: they and their moments are left alone. Default: none. */
  readonly skip?: readonly Range[];
}

interface Range {
  readonly offset: number;
  readonly size: number;
}

export const DEFAULT_ADAMW: AdamWOptions = { betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.01 };

/** What a checkpoint keeps of an optimizer. */
export interface AdamWState {
  /** Updates so far. */
  readonly step: number;
  /** [size] running mean of the gradient. */
  readonly firstMoment: Float32Array;
  /** [size] running mean of the squared gradient. */
  readonly secondMoment: Float32Array;
}

/**
 * AdamW over one flat array (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019), the same update as
 * torch.optim.AdamW. Arithmetic is in float64, moments and weights are kept in float32.
 */
export class AdamW {
  readonly #size: number;
  readonly #options: AdamWOptions;
  /** Made when first needed, so that a learner that never learns holds none. */
  #moments: Pick<AdamWState, 'firstMoment' | 'secondMoment'> | undefined;
  /** What is moved, and with how much decay. */
  readonly #pieces: readonly { readonly start: number; readonly end: number; readonly decay: number }[];
  #step = 0;

  /** @param size number of weights */
  constructor(size: number, options: AdamWOptions = DEFAULT_ADAMW) {
    const { betas, eps, weightDecay, decayMask = [], skip = [] } = options;
    for (const [name, value, valid] of [
      ['betas[0]', betas[0], betas[0] >= 0 && betas[0] < 1],
      ['betas[1]', betas[1], betas[1] >= 0 && betas[1] < 1],
      ['eps', eps, eps >= 0],
      ['weightDecay', weightDecay, weightDecay >= 0],
    ] as const) {
      if (!valid) throw new RangeError(`AdamW: ${name} is ${value}; betas lie in [0, 1), eps and weightDecay are ≥ 0`);
    }
    this.#options = options;
    this.#size = size;
    const special = [
      ...decayMask.filter(range => !range.decay).map(range => ({ ...range, moved: true })),
      ...skip.map(range => ({ ...range, moved: false })),
    ].sort((a, b) => a.offset - b.offset);
    const pieces: { start: number; end: number; decay: number }[] = [];
    let start = 0;
    for (const { offset, size: length, moved } of special) {
      pieces.push({ start, end: offset, decay: weightDecay });
      if (moved) pieces.push({ start: offset, end: offset + length, decay: 0 });
      start = offset + length;
    }
    this.#pieces = [...pieces, { start, end: size, decay: weightDecay }];
  }

  /**
   * Updates `weights` in place by one step along `factor` times `gradient`; both are as long as the optimizer is. The
   * factor is here because scaling the gradient by itself would read and write it once more.
   */
  step(weights: Float32Array, gradient: Float32Array, lr: number, factor = 1): void {
    const size = this.#size;
    if (weights.length !== size || gradient.length !== size) {
      throw new RangeError(`AdamW of ${size} weights: got ${weights.length} weights and ${gradient.length} gradients`);
    }
    this.#step += 1;
    for (const { start, end, decay } of this.#pieces) {
      this.#update(weights, gradient, { lr, factor, decay }, start, end);
    }
  }

  /** The live state, not a copy. */
  state(): AdamWState {
    return { step: this.#step, ...this.#live() };
  }

  /** Whether there is anything to release: not before the first step. */
  get holdsState(): boolean {
    return this.#moments !== undefined;
  }

  /** Forgets its moments, and keeps the number of steps. They must be put back into `state` before the next step. */
  release(): void {
    this.#moments = undefined;
  }

  /** Copies a state of the same size. */
  load(state: AdamWState): void {
    const size = this.#size;
    if (state.firstMoment.length !== size || state.secondMoment.length !== size) {
      throw new RangeError(
        `AdamW of ${size} weights cannot load moments of ${state.firstMoment.length} and ${state.secondMoment.length}; the state belongs to another model`,
      );
    }
    this.#step = state.step;
    const { firstMoment, secondMoment } = this.#live();
    firstMoment.set(state.firstMoment);
    secondMoment.set(state.secondMoment);
  }

  #live(): Pick<AdamWState, 'firstMoment' | 'secondMoment'> {
    this.#moments ??= { firstMoment: new Float32Array(this.#size), secondMoment: new Float32Array(this.#size) };
    return this.#moments;
  }

  #update(
    weights: Float32Array,
    gradient: Float32Array,
    { lr, factor, decay }: { readonly lr: number; readonly factor: number; readonly decay: number },
    start: number,
    end: number,
  ): void {
    const { firstMoment: first, secondMoment: second } = this.#live();
    const { betas, eps } = this.#options;
    const [beta1, beta2] = betas;
    const [rest1, rest2] = [1 - beta1, 1 - beta2];
    const keep = 1 - lr * decay;
    const stepSize = lr / (1 - beta1 ** this.#step);
    const scale = 1 / Math.sqrt(1 - beta2 ** this.#step);
    for (let i = start; i < end; i++) {
      const g = factor * gradient[i]!;
      const m = beta1 * first[i]! + rest1 * g;
      const v = beta2 * second[i]! + rest2 * g * g;
      first[i] = m;
      second[i] = v;
      weights[i] = keep * weights[i]! - (stepSize * m) / (Math.sqrt(v) * scale + eps);
    }
  }
}

/** L2 norm, summed in float64. */
export function globalNorm(values: Float32Array): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  const end = values.length - (values.length % 4);
  // Four sums break the chain of dependent additions.
  for (let i = 0; i < end; i += 4) {
    a += values[i]! * values[i]!;
    b += values[i + 1]! * values[i + 1]!;
    c += values[i + 2]! * values[i + 2]!;
    d += values[i + 3]! * values[i + 3]!;
  }
  for (let i = end; i < values.length; i++) a += values[i]! * values[i]!;
  return Math.sqrt(a + b + (c + d));
}

/**
 * What a gradient of this norm is multiplied with so that its norm is at most `maxNorm`, as
 * torch.nn.utils.clip_grad_norm_ has it.
 */
export function clipFactor(norm: number, maxNorm: number): number {
  return Math.min(1, maxNorm / (norm + 1e-6));
}
