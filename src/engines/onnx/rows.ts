import { MASKED } from '../../nn/models/attention.ts';
import type { DecoderConfig } from '../../nn/models/families.ts';
import type { TokenTree } from './tree.ts';

/**
 * How the attention reads a forest of tokens (see tree.ts). Its N tokens, in depth-first order, are cut into B rows of
 * Q queries; the keys of a row are the tokens above its first one and its own, at most T. Nothing else can be above
 * a query: whatever lies above it and before the row lies above the row's first token too.
 */
export interface Rows {
  readonly tree: TokenTree;
  readonly B: number;
  readonly Q: number;
  readonly T: number;
  /** Lines of `extra` (see `rowFeeds`), and how many places each has. */
  readonly E: number;
  readonly R: number;
}

/** What the cost of a cut depends on. */
export type AttentionSizes = Pick<DecoderConfig, 'heads' | 'kvHeads' | 'headDim' | 'hiddenSize' | 'intermediateSize'>;

/** Lengths of rows that are tried, and the whole forest in one row. */
const LENGTHS = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];

/** The cut that costs least. Long rows mask much of what they compute, short ones read the same keys again and again. */
export function cutRows(tree: TokenTree, config: AttentionSizes): Rows {
  const size = tree.tokens.length;
  const counts = new Set(LENGTHS.map(length => Math.max(1, Math.ceil(size / length))));
  let best: Rows | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const B of counts.add(1)) {
    const rows = cut(tree, B);
    const cost = costOf(rows, config);
    if (cost < least) [best, least] = [rows, cost];
  }
  return best!;
}

/** Into B rows; tokens are added to fill the last one. */
export function cut(tree: TokenTree, B: number): Rows {
  const { depth, end, tokens } = tree;
  const Q = Math.ceil(tokens.length / B);
  let T = 0;
  for (let row = 0; row < B; row++) T = Math.max(T, (depth[row * Q] ?? 0) + Q);
  let [E, R] = [0, 1];
  for (let n = 0; n < tokens.length; n++) {
    const more = rowOf(end[n]! - 1, Q) - rowOf(n, Q);
    if (more === 0) continue;
    E += 1;
    R = Math.max(R, more);
  }
  return { tree, B, Q, T, E: Math.max(1, E), R };
}

const rowOf = (token: number, Q: number) => Math.floor(token / Q);

/**
 * In scores computed, roughly, as measured on a CPU: a score is touched a dozen times forward and backward, an element
 * of a key or value about five times, one that is summed in the backward pass twice.
 */
function costOf({ tree, B, Q, T, E, R }: Rows, config: AttentionSizes): number {
  const { heads, kvHeads, headDim, hiddenSize, intermediateSize } = config;
  const keyValue = 2 * kvHeads * headDim;
  const perToken = hiddenSize * (2 * (heads + kvHeads) * headDim + 3 * intermediateSize);
  const filling = B * Q - tree.tokens.length;
  return B * T * (heads * Q + 0.4 * keyValue) + 0.2 * E * R * keyValue + filling * (perToken / 200);
}

export interface RowFeeds {
  /** [B*T] the token at each place of the keys; any token where nothing attends to it. */
  readonly keys: BigInt64Array;
  /** [B*Q] the place of each token among the keys of its own row. */
  readonly own: BigInt64Array;
  /** [E, R] further places of tokens that are keys of later rows; a place without a key where one has fewer. */
  readonly extra: BigInt64Array;
  /** [B*Q] the line of `extra` that a token has. */
  readonly line: BigInt64Array;
  /** [B*Q, 1] 1 where it has one. */
  readonly repeated: Float32Array;
}

/** See `spread` in nn/ops.ts. */
export function rowFeeds({ tree, B, Q, T, E, R }: Rows): RowFeeds {
  const size = tree.tokens.length;
  const keys = new BigInt64Array(B * T);
  const own = new BigInt64Array(B * Q);
  const line = new BigInt64Array(B * Q);
  const repeated = new Float32Array(B * Q);
  // Where every row has T keys, none begins below another's token, and nothing is repeated.
  let spare = 0n;
  for (let row = 0; row < B; row++) {
    const above = pathTo(tree, row * Q);
    for (const [t, n] of above.entries()) keys[row * T + t] = BigInt(n);
    for (let i = 0; i < Q; i++) {
      const place = row * T + above.length + i;
      keys[place] = BigInt(row * Q + i);
      own[row * Q + i] = BigInt(place);
    }
    if (above.length + Q < T) spare = BigInt(row * T + above.length + Q);
  }
  const extra = new BigInt64Array(E * R).fill(spare);
  let lines = 0;
  for (let n = 0; n < size; n++) {
    const [first, last] = [rowOf(n, Q), rowOf(tree.end[n]! - 1, Q)];
    if (first === last) continue;
    line[n] = BigInt(lines);
    repeated[n] = 1;
    for (let row = first + 1; row <= last; row++) {
      extra[lines * R + row - first - 1] = BigInt(row * T + tree.depth[n]!);
    }
    lines += 1;
  }
  return { keys, own, extra, line, repeated };
}

/** [B, Q, T] additive: a token attends to itself and those above it, the window − 1 nearest if there is one. */
export function rowMask({ tree, B, Q, T }: Rows, window: number | null): Float32Array {
  const { depth, end, parent } = tree;
  const size = tree.tokens.length;
  const mask = new Float32Array(B * Q * T).fill(MASKED);
  for (let start = 0; start < B * Q; start += Q) {
    const above = pathTo(tree, start);
    let common = above.length;
    for (let token = start; token < start + Q; token++) {
      const line = token * T;
      if (token >= size) {
        // Fills the row: attends to itself, so that its values stay finite.
        mask[line + above.length + token - start] = 0;
        continue;
      }
      const first = window === null ? 0 : Math.max(0, depth[token]! - window + 1);
      while (common > 0 && end[above[common - 1]!]! <= token) common -= 1;
      if (first < common) mask.fill(0, line + first, line + common);
      for (let n = token; n >= start && depth[n]! >= first; n = parent[n]!) mask[line + above.length + n - start] = 0;
    }
  }
  return mask;
}

/** The tokens above one, from the first of its sequence. */
function pathTo({ depth, parent }: TokenTree, token: number): Int32Array {
  const path = new Int32Array(depth[token] ?? 0);
  let n = token;
  for (let t = path.length - 1; t >= 0; t--) {
    n = parent[n]!;
    path[t] = n;
  }
  return path;
}
