import { input, type Node, scalar } from '../../nn/graph.ts';
import { type Parameter, type TensorPlace, tensorPlaces } from '../../nn/models/parameters.ts';
import { emit } from '../../nn/onnx.ts';
import { add, div, gemm, max, mul, reduceSum, reshape, sqrt, square, transpose } from '../../nn/ops.ts';
import { AdamW, type AdamWOptions, type AdamWState } from './optimizer.ts';
import { created, Session, type SessionOptions } from './session.ts';

/** Settings of Muon, named and defaulted as in OpenRLHF. */
export interface MuonOptions {
  /** Learning rate of the matrices as a multiple of that of the rest, which AdamW moves. */
  readonly lrRatio: number;
  /** Share of itself that the momentum keeps, in [0, 1). */
  readonly momentum: number;
  readonly nesterov: boolean;
  /** Newton-Schulz iterations, ≥ 1. */
  readonly steps: number;
}

/** a, b, c of Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024. */
const [A, B, C] = [3.4445, -4.775, 2.0315];
const EPS = 1e-7;

/** The matrices inside the layers, as the checkpoint has them: embeddings, heads and vectors are not for Muon. */
export function hiddenMatrices(layout: readonly Parameter[]): TensorPlace[] {
  return tensorPlaces(layout.filter(({ name, shape }) => name.startsWith('layers.') && shape.length === 2));
}

/**
 * Muon over one flat array, the same update as torch.optim.Muon with its defaults except that products are in float32
 * and not in bfloat16: the momentum of each hidden matrix is replaced by the nearest orthogonal matrix, roughly, by an
 * iteration of Newton and Schulz, and its length is √max(1, rows / columns) times the learning rate. Whatever is no such
 * matrix is moved by AdamW. The first moment of a matrix is its momentum; it has no second.
 */
export class Muon {
  readonly #adam: AdamW;
  readonly #matrices: readonly TensorPlace[];
  readonly #options: MuonOptions;
  readonly #weightDecay: number;
  readonly #sessionOptions: SessionOptions;
  #sessions: Promise<{ wide: Session; tall: Session }> | undefined;

  constructor(
    size: number,
    adam: AdamWOptions,
    matrices: readonly TensorPlace[],
    options: MuonOptions,
    sessionOptions: SessionOptions = {},
  ) {
    const { lrRatio, momentum, steps } = options;
    for (const [name, value, valid] of [
      ['lrRatio', lrRatio, lrRatio >= 0 && Number.isFinite(lrRatio)],
      ['momentum', momentum, momentum >= 0 && momentum < 1],
      ['steps', steps, Number.isInteger(steps) && steps >= 1],
    ] as const) {
      if (!valid) {
        throw new RangeError(`Muon: ${name} is ${value}; lrRatio is ≥ 0, momentum in [0, 1), steps an integer ≥ 1`);
      }
    }
    this.#adam = new AdamW(size, { ...adam, skip: matrices });
    this.#matrices = matrices;
    this.#options = options;
    this.#weightDecay = adam.weightDecay;
    this.#sessionOptions = sessionOptions;
  }

  /**
   * As `AdamW.step`; `lr` is that of AdamW. Weights change all at once, when every direction is known: somebody may read
   * them until then. The gradient of the matrices is overwritten.
   */
  async step(weights: Float32Array, gradient: Float32Array, lr: number, factor = 1): Promise<void> {
    const { firstMoment } = this.#adam.state();
    for (const place of this.#matrices) {
      const update = part(gradient, place);
      this.#accumulate(part(firstMoment, place), update, factor);
      await this.#orthogonalise(update, place);
    }
    this.#adam.step(weights, gradient, lr, factor);
    const own = lr * this.#options.lrRatio;
    const kept = 1 - own * this.#weightDecay;
    for (const place of this.#matrices) {
      const [rows, columns] = place.shape as [number, number];
      const length = own * Math.sqrt(Math.max(1, rows / columns));
      const [moved, direction] = [part(weights, place), part(gradient, place)];
      for (let i = 0; i < moved.length; i++) moved[i] = kept * moved[i]! - length * direction[i]!;
    }
  }

  state(): AdamWState {
    return this.#adam.state();
  }

  load(state: AdamWState): void {
    this.#adam.load(state);
  }

  get holdsState(): boolean {
    return this.#adam.holdsState;
  }

  release(): void {
    this.#adam.release();
  }

  async close(): Promise<void> {
    for (const { wide, tall } of await created([this.#sessions])) await Promise.all([wide.release(), tall.release()]);
  }

  /** Momentum takes the gradient up, and the gradient becomes the update. */
  #accumulate(momentum: Float32Array, gradient: Float32Array, factor: number): void {
    const { momentum: keep, nesterov } = this.#options;
    for (let i = 0; i < momentum.length; i++) {
      const g = factor * gradient[i]!;
      const m = keep * momentum[i]! + (1 - keep) * g;
      momentum[i] = m;
      gradient[i] = nesterov ? (1 - keep) * g + keep * m : m;
    }
  }

  async #orthogonalise(update: Float32Array, { shape }: TensorPlace): Promise<void> {
    this.#sessions ??= this.#createSessions();
    const { wide, tall } = await this.#sessions;
    const [M, N] = shape as [number, number];
    await (M > N ? tall : wide).run({ x: update }, { M, N }, { outputs: { y: update } });
  }

  async #createSessions() {
    const x = input('x', ['M', 'N']);
    const turned = (node: Node) => transpose(node, [1, 0]);
    const { steps } = this.#options;
    return {
      wide: await Session.create(emit({ y: newtonSchulz(x, steps) }), this.#sessionOptions),
      tall: await Session.create(emit({ y: turned(newtonSchulz(turned(x), steps)) }), this.#sessionOptions),
    };
  }
}

const part = (flat: Float32Array, { offset, size }: TensorPlace) => flat.subarray(offset, offset + size);

/** The matrix [m, n] with singular values near 1 and the singular vectors of x [m, n]; cheapest where m ≤ n. */
function newtonSchulz(x: Node, steps: number): Node {
  const norm = max(sqrt(reduceSum(square(x))), scalar(EPS));
  let y = div(x, reshape(norm, [1, 1]));
  for (let i = 0; i < steps; i++) {
    const gram = gemm(y, y, { transA: false, transB: true });
    const polynomial = add(mul(gram, scalar(B)), mul(gemm(gram, gram, { transA: false, transB: false }), scalar(C)));
    y = add(mul(y, scalar(A)), gemm(polynomial, y, { transA: false, transB: false }));
  }
  return y;
}
