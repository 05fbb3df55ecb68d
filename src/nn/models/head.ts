import { constant, type Node, recomputed, scalar } from '../graph.ts';
import {
  add,
  and,
  concat,
  exp,
  lessEqual,
  linear,
  log,
  max,
  min,
  mul,
  neg,
  reduceMax,
  reduceSum,
  reshape,
  softCap,
  softmax,
  stopGradient,
  straightThrough,
  sub,
  takeLast,
  where,
} from '../ops.ts';
import { zeroAfter } from '../recompute.ts';

/** What a language model says about P predicted tokens. */
export interface TokenPredictions {
  /** [P] log-probability of each predicted token, after temperature. */
  readonly logprobs: Node;
  /** [P] entropy in nats, after temperature. */
  readonly entropy: Node;
}

export interface Head {
  /** Rows of the vocabulary matrix, block after block: [v, hidden] each. */
  readonly blocks: readonly Node[];
  /** Logits become cap · tanh(x / cap). */
  readonly cap: number | null;
}

/** Logits of rows [R, hidden] for the tokens of one block: [R, v]. */
export function blockLogits(rows: Node, block: Node, cap: number | null): Node {
  const logits = linear(rows, block);
  return cap === null ? logits : softCap(logits, cap);
}

/**
 * Log-probabilities of `targets` int64 [P] and entropies from normalised hidden states `rows` [P, hidden], for logits
 * multiplied by `inverseTemperature` [].
 *
 * No more than one block of logits exists at a time: each is folded into sums over the vocabulary, and the way back
 * computes it anew (with a single block it is kept). That holds for the entropy only `withEntropy`. With p = exp(z - log Σ exp z) the derivatives of log p_t and of the
 * entropy H with respect to the logits z are 1_t - p and -p · (log p + H): those of Σ_t z - Σ p and of
 * -Σ p log p + (1 - H) Σ p, where the normaliser inside p and H itself are held fixed.
 */
export function tokenPredictions(
  rows: Node,
  { blocks, cap }: Head,
  targets: Node,
  inverseTemperature: Node,
  { withEntropy = true }: { readonly withEntropy?: boolean | undefined } = {},
): TokenPredictions {
  const logits = (block: Node, from = rows) => mul(blockLogits(from, block, cap), inverseTemperature);
  const starts = blocks.map((_, i) => blocks.slice(0, i).reduce((sum, { shape }) => sum + (shape[0] as number), 0));
  const rightLogit = (z: Node, i: number) => logitOf(z, targets, starts[i]!, blocks.length === 1);

  let waiting = rows;
  const values = blocks.map((block, i) => {
    const z = logits(block, waiting);
    const p = softmax(z);
    // The largest probability is 1 / Σ exp(z - max z).
    const normaliser = sub(reduceMax(z, [1], true), log(reduceMax(p, [1], true)));
    const right = rightLogit(z, i);
    const information = informationOf(p, sub(z, normaliser));
    // The next block waits, or the logits of all would be kept until the last thing that is read of them.
    waiting = add(rows, zeroAfter(withEntropy ? [normaliser, right, information] : [normaliser, right]));
    return { right, normaliser, information };
  });
  const normalisers = concat(
    values.map(each => each.normaliser),
    1,
  );
  const largest = reduceMax(normalisers, [1], true);
  const normaliser = add(largest, log(reduceSum(exp(sub(normalisers, largest)), [1], true)));
  const logprobs = sub(sum(values.map(each => each.right)), normaliser);
  // The entropy of which block, and the mean of the entropies inside them.
  const logShares = sub(normalisers, normaliser);
  const shares = exp(logShares);
  const inside = concat(
    values.map(each => each.information),
    1,
  );
  const entropy = add(informationOf(shares, logShares), reduceSum(mul(shares, inside), [1], true));

  const fixed = stopGradient(normaliser);
  const back = (block: Node, i: number) => {
    const z = logits(block);
    const logp = sub(z, fixed);
    const p = exp(logp);
    return {
      right: rightLogit(z, i),
      mass: reduceSum(p, [1], true),
      information: informationOf(p, logp),
    };
  };
  const paths = blocks.map((block, i) => (blocks.length === 1 ? back(block, i) : recomputed(() => back(block, i))));
  const mass = sum(paths.map(each => each.mass));
  const information = sum(paths.map(each => each.information));
  return {
    logprobs: flat(straightThrough(logprobs, sub(sum(paths.map(each => each.right)), mass))),
    entropy: flat(straightThrough(entropy, add(information, mul(sub(scalar(1), stopGradient(entropy)), mass)))),
  };
}

/** -Σ p log p over the last axis, kept. */
const informationOf = (p: Node, logp: Node) => neg(reduceSum(mul(p, logp), [1], true));
const sum = (nodes: readonly Node[]) => nodes.reduce(add);
const flat = (column: Node) => reshape(column, ['P']);

/** [P, 1] the logit of each target that is among the v tokens of a block, which begins at `start`; 0 for others. */
function logitOf(logits: Node, targets: Node, start: number, whole: boolean): Node {
  if (whole) return reshape(takeLast(logits, targets), ['P', 1]);
  const last = integer((logits.shape[1] as number) - 1);
  const index = sub(targets, integer(start));
  const inside = and(lessEqual(integer(0), index), lessEqual(index, last));
  const found = takeLast(logits, min(max(index, integer(0)), last));
  return reshape(where(inside, found, scalar(0)), ['P', 1]);
}

const integer = (value: number) => constant(BigInt64Array.of(BigInt(value)), []);
