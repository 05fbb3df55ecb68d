/**
 * Sequences as a forest of tokens: what sequences have in common at their beginning stands in it once. A token's
 * hidden state depends on the tokens before it alone, so it is computed once for all sequences that go through it, and
 * the derivative of a sum of their losses with respect to it is one backward pass.
 */

export interface TokenTree {
  /** [N] in depth-first order: the tokens below n are those in (n, end[n]). */
  readonly tokens: Int32Array;
  /** [N] position in the sequence. */
  readonly depth: Int32Array;
  /** [N] the token before, −1 for the first of a sequence. */
  readonly parent: Int32Array;
  readonly end: Int32Array;
  /** For each sequence the tokens of the forest that it goes through. */
  readonly paths: readonly Int32Array[];
}

/** Sequences in an order in which those with a common prefix are neighbours. */
export interface Neighbours {
  readonly order: readonly number[];
  /** For each place in the order: how many of its first tokens it shares with the one before it. */
  readonly shared: readonly number[];
}

/**
 * A common prefix shorter than this part of the shorter sequence is computed twice. A first token that everyone has
 * would save nothing, and make keys of it that every row of the attention reads.
 */
const WORTHWHILE = 1 / 4;

export function neighbours(sequences: readonly Int32Array[], share: boolean): Neighbours {
  const order = sequences.map((_, index) => index);
  if (!share) return { order, shared: order.map(() => 0) };
  order.sort((a, b) => compare(sequences[a]!, sequences[b]!) || a - b);
  const shared = order.map((index, place) => {
    if (place === 0) return 0;
    const [before, own] = [sequences[order[place - 1]!]!, sequences[index]!];
    const length = commonPrefix(before, own);
    return length >= WORTHWHILE * Math.min(before.length, own.length) ? length : 0;
  });
  return { order, shared };
}

function commonPrefix(a: Int32Array, b: Int32Array): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a[length] === b[length]) length += 1;
  return length;
}

/** As words in a dictionary: a prefix comes before what it begins. */
function compare(a: Int32Array, b: Int32Array): number {
  const length = commonPrefix(a, b);
  return length < a.length && length < b.length ? a[length]! - b[length]! : a.length - b.length;
}

/** @param share without it nothing is shared, and the forest is the sequences side by side */
export function growTree(sequences: readonly Int32Array[], share: boolean): TokenTree {
  const { order, shared } = neighbours(sequences, share);
  const size = order.reduce((sum, index, place) => sum + sequences[index]!.length - shared[place]!, 0);
  const tree = {
    tokens: new Int32Array(size),
    depth: new Int32Array(size),
    parent: new Int32Array(size),
    end: new Int32Array(size),
    paths: sequences.map(sequence => new Int32Array(sequence.length)),
  };
  let next = 0;
  let before = new Int32Array(0);
  order.forEach((index, place) => {
    const sequence = sequences[index]!;
    const path = tree.paths[index]!;
    path.set(before.subarray(0, shared[place]!));
    for (let t = shared[place]!; t < sequence.length; t++) {
      tree.tokens[next] = sequence[t]!;
      tree.depth[next] = t;
      tree.parent[next] = t === 0 ? -1 : path[t - 1]!;
      path[t] = next++;
    }
    for (const n of path) tree.end[n] = next;
    before = path;
  });
  return tree;
}
