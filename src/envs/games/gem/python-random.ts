const N = 624;
const M = 397;

/**
 * The generator of Python's `random` module, number for number: MT19937 (Matsumoto and Nishimura 1998), seeded by an
 * integer as CPython seeds it (the 32-bit words of its absolute value, through `init_by_array`), and the draws of Python
 * 3.11. Ranges hold at most 2^32 - 1 values.
 */
export class PythonRandom {
  readonly #words = new Uint32Array(N);
  #next = N;

  constructor(seed: number | bigint) {
    if (typeof seed === 'number' && !Number.isSafeInteger(seed)) throw new Error(`the seed ${seed} is no integer`);
    const key: number[] = [];
    for (let rest = BigInt(seed) < 0n ? -BigInt(seed) : BigInt(seed); rest > 0n; rest >>= 32n) {
      key.push(Number(rest & 0xffffffffn));
    }
    this.#seedByArray(key.length > 0 ? key : [0]);
  }

  /** `random.random()`: 53 bits in [0, 1). */
  random(): number {
    const high = this.#uint32() >>> 5;
    const low = this.#uint32() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  /** `random.randrange(n)`: an integer in [0, n). */
  below(n: number): number {
    if (!(Number.isInteger(n) && n >= 1 && n < 2 ** 32)) {
      throw new Error(`cannot draw below ${n}; give an integer from 1 to 2^32 - 1`);
    }
    const unused = Math.clz32(n);
    for (;;) {
      const drawn = this.#uint32() >>> unused;
      if (drawn < n) return drawn;
    }
  }

  /** `random.randint(low, high)`: both ends included. */
  randint(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  choice<T>(items: ArrayLike<T>): T {
    return items[this.below(items.length)]!;
  }

  /** In place. */
  shuffle(items: unknown[]): void {
    for (let i = items.length - 1; i >= 1; i--) {
      const j = this.below(i + 1);
      [items[i], items[j]] = [items[j], items[i]];
    }
  }

  /** `k` different items, in the order drawn. */
  sample<T>(items: readonly T[], k: number): T[] {
    const n = items.length;
    if (!(Number.isInteger(k) && k >= 0 && k <= n)) throw new Error(`cannot draw ${k} different items of ${n}`);
    // CPython takes from a pool where a list of n is smaller than a set of k, and redraws repeats otherwise.
    const setSize = 21 + (k > 5 ? 4 ** Math.ceil(Math.log(k * 3) / Math.log(4)) : 0);
    if (n <= setSize) {
      const pool = [...items];
      return Array.from({ length: k }, (_, i) => {
        const j = this.below(n - i);
        const drawn = pool[j]!;
        pool[j] = pool[n - i - 1]!;
        return drawn;
      });
    }
    const taken = new Set<number>();
    while (taken.size < k) taken.add(this.below(n));
    return [...taken].map(index => items[index]!);
  }

  #seedByArray(key: readonly number[]): void {
    const words = this.#words;
    words[0] = 19650218;
    for (let i = 1; i < N; i++) words[i] = Math.imul(1812433253, words[i - 1]! ^ (words[i - 1]! >>> 30)) + i;
    let i = 1;
    const advance = () => {
      i += 1;
      if (i < N) return;
      words[0] = words[N - 1]!;
      i = 1;
    };
    for (let step = 0; step < Math.max(N, key.length); step++) {
      const j = step % key.length;
      words[i] = (words[i]! ^ Math.imul(words[i - 1]! ^ (words[i - 1]! >>> 30), 1664525)) + key[j]! + j;
      advance();
    }
    for (let step = 0; step < N - 1; step++) {
      words[i] = (words[i]! ^ Math.imul(words[i - 1]! ^ (words[i - 1]! >>> 30), 1566083941)) - i;
      advance();
    }
    words[0] = 0x80000000;
  }

  #uint32(): number {
    if (this.#next === N) this.#twist();
    let y = this.#words[this.#next++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  #twist(): void {
    const words = this.#words;
    for (let i = 0; i < N; i++) {
      const y = (words[i]! & 0x80000000) | (words[(i + 1) % N]! & 0x7fffffff);
      words[i] = words[(i + M) % N]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.#next = 0;
  }
}
