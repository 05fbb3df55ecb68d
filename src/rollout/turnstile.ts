/** Lets one waiter through each time something has changed; a change while nobody waits is not forgotten. */
export class Turnstile {
  #changed = false;
  #pass: (() => void) | undefined;

  notify(): void {
    this.#changed = true;
    this.#pass?.();
  }

  async wait(): Promise<void> {
    if (!this.#changed) {
      await new Promise<void>(resolve => {
        this.#pass = resolve;
      });
    }
    this.#changed = false;
    this.#pass = undefined;
  }
}
