import type { CachedSequence } from './cache.ts';

interface Entry {
  readonly tokens: Int32Array;
  readonly sequence: CachedSequence;
}

interface TrieNode {
  readonly children: Map<number, TrieNode>;
  /** Some entry that passes through this node: its first `depth` positions are the path to it. */
  entry: Entry;
}

/**
 * Keys and values of finished sequences, found again by their tokens: a trie over the tokens whose nodes point at an
 * entry that contains them. Successive turns of an episode extend an entry; other requests share part of one. Least
 * recently used entries go when the memory budget is reached; what is gone is recomputed.
 */
export class PrefixCache {
  readonly #budget: number;
  readonly #root = new Map<number, TrieNode>();
  /** In order of last use, oldest first. */
  readonly #entries = new Set<Entry>();
  #bytes = 0;
  #evictions = 0;

  /** @param budget bytes of keys and values to hold at most; 0 stores nothing */
  constructor(budget: number) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Entries that had to go for the budget, since the beginning. */
  get evictions(): number {
    return this.#evictions;
  }

  /** The longest cached prefix of `tokens`, at most `limit` long; `length` positions of the sequence are valid. */
  longest(tokens: Int32Array, limit: number): { sequence: CachedSequence; length: number } | undefined {
    let children = this.#root;
    let found: TrieNode | undefined;
    let length = 0;
    while (length < Math.min(tokens.length, limit)) {
      const next = children.get(tokens[length]!);
      if (next === undefined) break;
      found = next;
      children = next.children;
      length += 1;
    }
    if (found === undefined) return undefined;
    this.#touch(found.entry);
    return { sequence: found.entry.sequence, length };
  }

  /** Stores a sequence under its tokens, unless an entry already contains them. */
  store(tokens: Int32Array, extract: () => CachedSequence): void {
    if (this.#budget === 0 || tokens.length === 0) return;
    const known = this.longest(tokens, tokens.length);
    if (known?.length === tokens.length) return;
    const sequence = extract();
    if (sequence.data.byteLength > this.#budget) return;
    const entry: Entry = { tokens, sequence };
    let children = this.#root;
    tokens.forEach((token, position) => {
      let node = children.get(token);
      if (node === undefined) {
        node = { children: new Map(), entry };
        children.set(token, node);
      } else {
        // An entry that ends here is contained in the new one, which takes over all of its nodes.
        if (node.entry.tokens.length === position + 1) this.#forget(node.entry);
        node.entry = entry;
      }
      children = node.children;
    });
    this.#entries.add(entry);
    this.#bytes += sequence.data.byteLength;
    while (this.#bytes > this.#budget) this.#evict(this.#entries.values().next().value!);
  }

  clear(): void {
    this.#root.clear();
    this.#entries.clear();
    this.#bytes = 0;
  }

  #touch(entry: Entry): void {
    this.#entries.delete(entry);
    this.#entries.add(entry);
  }

  #forget(entry: Entry): void {
    if (this.#entries.delete(entry)) this.#bytes -= entry.sequence.data.byteLength;
  }

  #evict(entry: Entry): void {
    this.#evictions += 1;
    this.#forget(entry);
    const path: { siblings: Map<number, TrieNode>; token: number; node: TrieNode }[] = [];
    let siblings = this.#root;
    for (const token of entry.tokens) {
      const node = siblings.get(token)!;
      path.push({ siblings, token, node });
      siblings = node.children;
    }
    // From the end up: a node that loses its entry takes a child's, or goes.
    for (const { siblings, token, node } of path.reverse()) {
      if (node.entry !== entry) continue;
      const [child] = node.children.values();
      if (child === undefined) siblings.delete(token);
      else node.entry = child.entry;
    }
  }
}
