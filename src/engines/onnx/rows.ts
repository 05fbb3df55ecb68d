import { MASKED } from '../../nn/models/attention.ts';
import type { DecoderConfig } from '../../nn/models/families.ts';
import { ROW_CLASSES } from '../../nn/models/row-attention.ts';
import type { TokenTree } from './tree.ts';

/**
 * How the attention reads a forest of tokens (see tree.ts). Its N tokens, in depth-first order, are cut into rows of
 * Q queries; the keys of a row are the tokens above its first one and its own. Nothing else can be above a query:
 * whatever lies above it and before the row lies above the row's first token too.
 *
 * Rows stand in the order of their number of keys, in classes: those of one class have room for the same number.
 */
export interface Rows {
  readonly tree: TokenTree;
  readonly Q: number;
  /** B rows with T keys. */
  readonly classes: readonly { readonly B: number; readonly T: number }[];
  /** Where the rows of the depth-first order stand. */
  readonly rank: readonly number[];
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
  const counts = new Set([...LENGTHS, size].map(length => Math.max(ROW_CLASSES, Math.ceil(size / length))));
  let best: Rows | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const count of counts) {
    const rows = cut(tree, count);
    const cost = costOf(rows, config);
    if (cost < least) [best, least] = [rows, cost];
  }
  return best!;
}

/** Into `count` rows, at least as many as there are classes; tokens are added to fill the last one. */
export function cut(tree: TokenTree, count: number): Rows {
  const { depth, end, tokens } = tree;
  const Q = Math.ceil(tokens.length / count);
  const keys = Array.from({ length: count }, (_, row) => (depth[row * Q] ?? 0) + Q);
  const order = [...keys.keys()].sort((a, b) => keys[a]! - keys[b]! || a - b);
  const rank: number[] = [];
  for (const [place, row] of order.entries()) rank[row] = place;
  const further = Array.from(tokens, (_, n) => rowOf(end[n]! - 1, Q) - rowOf(n, Q)).filter(more => more > 0);
  const R = further.reduce((most, more) => Math.max(most, more), 1);
  const sorted = order.map(row => keys[row]!);
  const { classes, room } = classify(sorted, 0, ROW_CLASSES);
  // Lines that are shorter than the longest are filled up with a place without a key: there must be one.
  const isFull = room === sorted.reduce((sum, count) => sum + count, 0);
  const grown = isFull && further.some(more => more < R);
  const last = classes.at(-1)!;
  return {
    tree,
    Q,
    classes: grown ? [...classes.slice(0, -1), { ...last, T: last.T + 1 }] : classes,
    rank,
    E: Math.max(1, further.length),
    R,
  };
}

const rowOf = (token: number, Q: number) => Math.floor(token / Q);

/** The classes of rows from `begin` on that waste the least room. Of many rows, sixteen ends of a class are tried. */
function classify(keys: readonly number[], begin: number, classes: number): { classes: Rows['classes']; room: number } {
  const last = keys.length - classes + 1;
  const ending = (end: number) => ({ B: end - begin, T: keys[end - 1]! });
  if (classes === 1) return { classes: [ending(last)], room: (last - begin) * keys[last - 1]! };
  let best: ReturnType<typeof classify> | undefined;
  const step = Math.max(1, Math.floor((last - begin) / 16));
  for (let end = begin + 1; end <= last; end += step) {
    const own = ending(end);
    const rest = classify(keys, end, classes - 1);
    const room = own.B * own.T + rest.room;
    if (best === undefined || room < best.room) best = { classes: [own, ...rest.classes], room };
  }
  return best!;
}

/**
 * In scores computed, roughly, as measured on a CPU: a score is touched a dozen times forward and backward, an element
 * of a key or value about five times, one that is summed in the backward pass twice.
 */
function costOf({ tree, Q, classes, rank, E, R }: Rows, config: AttentionSizes): number {
  const { heads, kvHeads, headDim, hiddenSize, intermediateSize } = config;
  const keyValue = 2 * kvHeads * headDim;
  const perToken = hiddenSize * (2 * (heads + kvHeads) * headDim + 3 * intermediateSize);
  const filling = rank.length * Q - tree.tokens.length;
  const room = classes.reduce((sum, { B, T }) => sum + B * T, 0);
  return room * (heads * Q + 0.4 * keyValue) + 0.2 * E * R * keyValue + filling * (perToken / 200);
}

/** Where each token of the forest stands among the packed ones. */
export function packedIndex({ tree, Q, rank }: Rows): Int32Array {
  return tree.tokens.map((_, n) => rank[rowOf(n, Q)]! * Q + (n % Q));
}

/** For each row as they stand: the place of its first key, and how many it has room for. */
function rooms({ classes }: Rows): { readonly first: number; readonly T: number }[] {
  let next = 0;
  return classes.flatMap(({ B, T }) =>
    Array.from({ length: B }, () => {
      const first = next;
      next += T;
      return { first, T };
    }),
  );
}

/** M places for keys, B rows in all. */
export interface RowFeeds {
  /** [M] the token at each place of the keys; any token where nothing attends to it. */
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
export function rowFeeds(rows: Rows): RowFeeds {
  const { tree, Q, rank, E, R } = rows;
  const room = rooms(rows);
  const index = packedIndex(rows);
  const keys = new BigInt64Array(room.reduce((sum, { T }) => sum + T, 0));
  const own = new BigInt64Array(rank.length * Q);
  const line = new BigInt64Array(rank.length * Q);
  const repeated = new Float32Array(rank.length * Q);
  // Where every row fills its room, no line is to be filled up.
  let spare = -1;
  for (const [row, place] of rank.entries()) {
    const { first, T } = room[place]!;
    const above = pathTo(tree, row * Q);
    for (const [t, n] of above.entries()) keys[first + t] = BigInt(index[n]!);
    for (let i = 0; i < Q; i++) {
      const token = place * Q + i;
      const at = first + above.length + i;
      keys[at] = BigInt(token);
      own[token] = BigInt(at);
    }
    if (above.length + Q < T) spare = first + above.length + Q;
  }
  const extra = new BigInt64Array(E * R).fill(BigInt(spare));
  let lines = 0;
  for (const [n, token] of index.entries()) {
    const [begin, end] = [rowOf(n, Q), rowOf(tree.end[n]! - 1, Q)];
    if (begin === end) continue;
    line[token] = BigInt(lines);
    repeated[token] = 1;
    for (let row = begin + 1; row <= end; row++) {
      extra[lines * R + row - begin - 1] = BigInt(room[rank[row]!]!.first + tree.depth[n]!);
    }
    lines += 1;
  }
  return { keys, own, extra, line, repeated };
}

/**
 * For each class [B, Q, T], additive: a token attends to itself and those above it, the window − 1 nearest if there is
 * one.
 */
export function rowMasks(rows: Rows, window: number | null): Float32Array[] {
  const { tree, Q, classes, rank } = rows;
  const { depth, end, parent, tokens } = tree;
  const masks = classes.map(({ B, T }) => new Float32Array(B * Q * T).fill(MASKED));
  const lines = classes.flatMap(({ B, T }, c) =>
    Array.from({ length: B }, (_, row) => masks[c]!.subarray(row * Q * T, (row + 1) * Q * T)),
  );
  for (const [row, place] of rank.entries()) {
    const mask = lines[place]!;
    const T = mask.length / Q;
    const start = row * Q;
    const above = pathTo(tree, start);
    let common = above.length;
    for (let i = 0; i < Q; i++) {
      const token = start + i;
      if (token >= tokens.length) {
        // Fills the row: attends to itself, so that its values stay finite.
        mask[i * T + above.length + i] = 0;
        continue;
      }
      const first = window === null ? 0 : Math.max(0, depth[token]! - window + 1);
      while (common > 0 && end[above[common - 1]!]! <= token) common -= 1;
      if (first < common) mask.fill(0, i * T + first, i * T + common);
      for (let n = token; n >= start && depth[n]! >= first; n = parent[n]!) {
        mask[i * T + above.length + n - start] = 0;
      }
    }
  }
  return masks;
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
