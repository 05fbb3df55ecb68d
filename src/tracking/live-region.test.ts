import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { liveRegion } from './live-region.ts';

/** A terminal of so many columns that keeps what a person sees: lines break at its edge, and break anew at a resize. */
class Screen {
  columns: number;
  /** Logical lines, as they were ended by a newline. */
  lines: string[] = [''];
  #row = 0;
  #listeners: (() => void)[] = [];

  constructor(columns: number) {
    this.columns = columns;
  }

  get #rows(): { line: number; from: number }[] {
    return this.lines.flatMap((text, line) =>
      Array.from({ length: Math.max(1, Math.ceil(text.length / this.columns)) }, (_, i) => ({
        line,
        from: i * this.columns,
      })),
    );
  }

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what moves the cursor
    for (const [token] of text.matchAll(/\r|\n|\u001b\[\d*[AJ]|[^\r\n\u001b]+/g)) {
      const [, count, code] = /^.\[(\d*)([AJ])$/.exec(token) ?? [];
      if (token === '\n') this.#row = this.lines.push('');
      else if (code === 'A') this.#row -= Number(count);
      else if (code === 'J') {
        const { line, from } = this.#rows[this.#rowNow()]!;
        this.lines = [...this.lines.slice(0, line), this.lines[line]!.slice(0, from)];
      } else if (token !== '\r') this.lines[this.lines.length - 1] += token;
      if (code !== 'A' && token !== '\r') this.#row = this.#rows.length - 1;
    }
  }

  #rowNow(): number {
    return Math.max(0, Math.min(this.#row, this.#rows.length - 1));
  }

  resize(columns: number): void {
    this.columns = columns;
    this.#row = this.#rows.length - 1;
    for (const listener of this.#listeners) listener();
  }

  on(_: 'resize', listener: () => void): void {
    this.#listeners.push(listener);
  }

  off(_: 'resize', listener: () => void): void {
    this.#listeners = this.#listeners.filter(one => one !== listener);
  }
}

describe('liveRegion', () => {
  it('draws anew in place, on as many lines as the pieces need', () => {
    const screen = new Screen(20);
    const region = liveRegion(screen);
    region.show(['step 1/10', 'reward 0.1']);
    expect(screen.lines).toEqual(['step 1/10', 'reward 0.1']);
    region.show(['step 2/10', 'kl 1']);
    expect(screen.lines).toEqual(['step 2/10  kl 1']);
    region.end();
    expect(screen.lines).toEqual(['step 2/10  kl 1', '']);
  });

  it('lets others write above it, also to another stream, and waits for the end of their line', () => {
    const screen = new Screen(20);
    const region = liveRegion(screen);
    region.show(['step 1/10']);
    region.above('saved\n');
    region.above('warned\n', { write: text => screen.write(text) });
    expect(screen.lines).toEqual(['saved', 'warned', 'step 1/10']);
    region.above('half a ');
    expect(screen.lines).toEqual(['saved', 'warned', 'half a ']);
    region.above('line\n');
    expect(screen.lines).toEqual(['saved', 'warned', 'half a line', 'step 1/10']);
  });

  it('leaves no scrap behind, whatever is shown, written and resized', () => {
    const piece = fc.stringMatching(/^[a-z0-9 ]{1,24}$/);
    const action = fc.oneof(
      fc.record({ show: fc.array(piece, { minLength: 1, maxLength: 6 }) }),
      fc.record({ above: fc.stringMatching(/^[A-Z]{1,40}$/) }),
      fc.record({ resize: fc.integer({ min: 5, max: 60 }) }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 20 }), actions => {
        const screen = new Screen(30);
        const region = liveRegion(screen);
        const written: string[] = [];
        for (const step of actions) {
          if ('show' in step) region.show(step.show);
          else if ('resize' in step) screen.resize(step.resize);
          else {
            region.above(`${step.above}\n`);
            written.push(step.above);
          }
          expect(screen.lines.filter(line => /^[A-Z]+$/.test(line))).toEqual(written);
          expect(screen.lines.length - written.length).toBeLessThanOrEqual(3);
          const shown = screen.lines.slice(written.length);
          expect(shown.every(line => line.length < screen.columns || line === '')).toBe(true);
        }
      }),
    );
  });

  it('counts wide characters twice and lets nobody move the cursor', () => {
    const screen = new Screen(9);
    liveRegion(screen).show(['報酬報酬報酬', 'a\u001b[2J\nb']);
    expect(screen.lines).toEqual(['報酬報酬', 'a [2J b']);
  });
});
