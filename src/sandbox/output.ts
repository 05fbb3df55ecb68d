/** Collects one stream of a program: keeps the beginning up to a limit and drains the rest, so that nobody blocks. */
export class Output {
  readonly #limit: number;
  #kept: Buffer[] = [];
  #size = 0;
  /** Everything that came, kept or not, in bytes. */
  total = 0;
  #tail = Buffer.alloc(0);

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.total += chunk.length;
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(-64)]).subarray(-64);
    if (this.#size >= this.#limit) return;
    const part = chunk.subarray(0, this.#limit - this.#size);
    this.#kept.push(part);
    this.#size += part.length;
  }

  /** Whether what has come ends with this mark, of at most 64 characters. */
  endsWith(mark: string): boolean {
    return this.#tail.toString('latin1').endsWith(mark);
  }

  get cut(): boolean {
    return this.total > this.#limit;
  }

  /** What was kept, without `mark` at its end; begins anew. */
  take(mark = ''): { readonly text: string; readonly cut: boolean } {
    const total = this.total - mark.length;
    const kept = Buffer.concat(this.#kept).subarray(0, Math.min(total, this.#limit));
    const cut = total > kept.length;
    const text = kept.toString('utf8');
    this.#kept = [];
    this.#size = 0;
    this.total = 0;
    this.#tail = Buffer.alloc(0);
    return { text: cut ? `${text}\n[... ${total - kept.length} bytes cut]` : text, cut };
  }
}
