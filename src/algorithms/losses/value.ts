import type { Loss } from '../ops.ts';

/**
 * The critic's loss: ½·Σ weights·max((V − R)², (V_clip − R)²), where V_clip = V_old + clip(V − V_old, −c, c) keeps one
 * update from moving a value further than c. Inputs: 'returns', 'old_values', 'weights', 'share'. Metrics: critic_loss;
 * values, their token mean; value_clip_ratio, the share of tokens on which the clipped error counted.
 * Source: Schulman et al., Proximal Policy Optimization, as implemented for language models by Ouyang et al., 2022
 */
export function valueLoss(options: { readonly clip?: number | undefined } = {}): Loss {
  const { clip } = options;
  if (clip !== undefined && !(clip > 0))
    throw new Error(`the value clip must be > 0, got ${clip}; leave it out for none`);
  return {
    key: clip === undefined ? 'value' : `value(clip=${clip})`,
    inputs: ['returns', 'old_values', 'weights', 'share'],
    entropy: false,
    values: true,
    build(ops, context) {
      const input = (name: string) => context.inputs[name]!;
      const zero = ops.constant(0);
      const counted = ops.less(zero, input('weights'));
      const values = ops.where(counted, context.values!, zero);
      const returns = ops.where(counted, input('returns'), zero);
      const square = (error: typeof values) => ops.mul(error, error);
      let error = square(ops.sub(values, returns));
      const metrics = { values: ops.sum(ops.mul(input('share'), values)) };
      let clipped = zero;
      if (clip !== undefined) {
        const old = ops.where(counted, input('old_values'), zero);
        const moved = ops.sub(values, old);
        const outside = ops.less(ops.constant(clip), ops.abs(moved));
        // Inside the bound it is V itself: V_old + (V − V_old) would differ by rounding and be counted as clipped.
        const bounded = ops.where(outside, ops.add(old, ops.clamp(moved, -clip, clip)), values);
        const boundedError = square(ops.sub(bounded, returns));
        clipped = ops.sum(ops.mul(input('share'), ops.less(error, boundedError)));
        error = ops.max(error, boundedError);
      }
      const loss = ops.mul(ops.constant(0.5), ops.sum(ops.mul(input('weights'), error)));
      return {
        loss,
        metrics: { ...metrics, critic_loss: loss, ...(clip === undefined ? {} : { value_clip_ratio: clipped }) },
      };
    },
  };
}

/**
 * 1 − Var(R − V) / Var(R), each token weighing `share`: 1 for a perfect critic, 0 for a constant one. NaN where the
 * returns do not vary. Arrays are per trajectory [P].
 */
export function explainedVariance(
  values: readonly Float32Array[],
  returns: readonly Float32Array[],
  share: readonly Float32Array[],
): number {
  const variance = (at: (i: number, t: number) => number): number => {
    let [total, mean, squares] = [0, 0, 0];
    for (const [i, row] of share.entries()) {
      for (const [t, weight] of row.entries()) {
        if (weight === 0) continue;
        const value = at(i, t);
        total += weight;
        const delta = value - mean;
        mean += (weight / total) * delta;
        squares += weight * delta * (value - mean);
      }
    }
    return squares / total;
  };
  const spread = variance((i, t) => returns[i]![t]!);
  return spread === 0 ? Number.NaN : 1 - variance((i, t) => returns[i]![t]! - values[i]![t]!) / spread;
}
