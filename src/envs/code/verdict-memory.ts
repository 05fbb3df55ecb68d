import { createHash } from 'node:crypto';
import type { Verdict } from '../../sandbox/judge.ts';

/**
 * Verdicts by what was tested, the longest unused forgotten first. Those that ask at the same time share one run. What
 * a clock has decided is not kept: a program that was too slow may be in time on a machine that is less busy.
 */
export class VerdictMemory {
  readonly #known = new Map<string, Promise<Verdict[]>>();

  get(what: unknown, run: () => Promise<Verdict[]>, capacity: number): Promise<Verdict[]> {
    if (capacity === 0) return run();
    const key = createHash('sha256').update(JSON.stringify(what)).digest('base64');
    const known = this.#known.get(key);
    this.#known.delete(key);
    const verdicts = known ?? run();
    this.#known.set(key, verdicts);
    if (known === undefined) {
      const forget = () => this.#known.get(key) === verdicts && this.#known.delete(key);
      verdicts.then(all => all.some(({ ending }) => ending === 'timeout') && forget(), forget);
    }
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= capacity) break;
      this.#known.delete(oldest);
    }
    return verdicts;
  }
}
