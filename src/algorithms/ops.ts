/**
 * The operations a loss is written in. A loss is one function over this interface; `numeric.ts` evaluates it on arrays
 * (with gradient), the embedded engine evaluates it symbolically into its training graph.
 *
 * Values are vectors with one element per predicted (policy) position of a batch, in order, or scalars that broadcast.
 * Comparisons give 0/1 vectors. Gradients do not flow through comparisons, `stopGradient`, or the condition of `where`.
 */
export interface Ops<T> {
  constant(value: number): T;
  add(a: T, b: T): T;
  sub(a: T, b: T): T;
  mul(a: T, b: T): T;
  div(a: T, b: T): T;
  neg(a: T): T;
  exp(a: T): T;
  log(a: T): T;
  abs(a: T): T;
  /** log(1 + exp(a)), overflow-safe. */
  softplus(a: T): T;
  sigmoid(a: T): T;
  /** Where a = b the gradient goes to `a`. */
  min(a: T, b: T): T;
  max(a: T, b: T): T;
  /** Gradient is 0 outside [low, high] and passes at and inside the bounds. */
  clamp(a: T, low: number, high: number): T;
  less(a: T, b: T): T;
  /** Where `condition` is 1 the value and gradient are `a`'s, elsewhere `b`'s: never a product, so NaN cannot leak. */
  where(condition: T, a: T, b: T): T;
  stopGradient(a: T): T;
  /** Sum over all positions: a scalar. */
  sum(a: T): T;
  /** Sum over the positions of each sequence (of each pair, in a batch of pairs), given back at each of its positions. */
  sequenceSum(a: T): T;
}

/** What a loss sees for each predicted position. */
export interface LossContext<T> {
  /** Log-probability of the token under the policy being updated; differentiable. */
  readonly logprobs: T;
  /** Entropy of the policy at the position, in nats; differentiable. Present when the loss declares `entropy`. */
  readonly entropy?: T;
  /** Prediction of the value head; differentiable. Present when the loss declares `values`. */
  readonly values?: T;
  /** The arrays named by `Loss.inputs`; not differentiable. */
  readonly inputs: Readonly<Record<string, T>>;
}

export interface Loss {
  /** Identifies the loss and all of its options: engines cache compiled graphs under it. */
  readonly key: string;
  /** Names of the per-position arrays the loss reads. */
  readonly inputs: readonly string[];
  readonly entropy: boolean;
  /** Whether the loss reads the value head, of a learner that has one. */
  readonly values?: boolean;
  /** `loss` and every metric are scalars that are sums over positions, so micro-batches add up. */
  build<T>(ops: Ops<T>, context: LossContext<T>): { readonly loss: T; readonly metrics: Readonly<Record<string, T>> };
}
