/** What is used of a stream that may be a terminal. */
export interface TerminalStream {
  write(text: string): unknown;
  /** Width in characters; 80 when it does not say. */
  readonly columns?: number | undefined;
  on?(event: 'resize', listener: () => void): unknown;
  off?(event: 'resize', listener: () => void): unknown;
}

/** Lines at the bottom of a terminal that are drawn anew; everything else is written above them. */
export interface LiveRegion {
  /** Shows these pieces, as many on a line as it has room for. */
  show(pieces: readonly string[]): void;
  /** Writes text of anyone, to this stream or another one of the same terminal, above the region. */
  above(text: string, to?: Pick<TerminalStream, 'write'>): void;
  /** Leaves what is shown where it is. */
  end(): void;
}

const GAP = '  ';
const MOST_LINES = 3;

export function liveRegion(stream: TerminalStream): LiveRegion {
  let pieces: readonly string[] = [];
  /** Widths of the lines on the screen now. */
  let drawn: readonly number[] = [];
  let listening = false;
  /** Someone else's line has not ended yet. */
  let open = false;

  const clear = () => {
    if (drawn.length === 0) return '';
    // A terminal that became narrower has broken lines in two.
    const rows = drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columnsOf(stream))), 0);
    drawn = [];
    return `\r${rows > 1 ? `\u001b[${rows - 1}A` : ''}\u001b[J`;
  };
  const draw = () => {
    if (pieces.length === 0 || open) return '';
    const lines = layOut(pieces, columnsOf(stream) - 1);
    drawn = lines.map(cellsOf);
    return lines.join('\n');
  };
  const redraw = () => {
    if (drawn.length > 0) stream.write(clear() + draw());
  };
  return {
    show(next) {
      pieces = next.map(printable);
      if (!listening) stream.on?.('resize', redraw);
      listening = true;
      stream.write(clear() + draw());
    },
    above(text, to = stream) {
      if (text === '') return;
      const before = clear();
      if (before !== '') stream.write(before);
      to.write(text);
      open = !text.endsWith('\n');
      const after = draw();
      if (after !== '') stream.write(after);
    },
    end() {
      stream.off?.('resize', redraw);
      if (drawn.length > 0) stream.write('\n');
      pieces = [];
      drawn = [];
      listening = false;
    },
  };
}

function columnsOf({ columns }: TerminalStream): number {
  return Math.max(2, columns || 80);
}

/** Pieces on lines of at most `width` cells. What has no room is left out; a piece wider than a line is cut. */
function layOut(pieces: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const piece of pieces) {
    const last = lines.at(-1);
    const joined = last === undefined ? undefined : last + GAP + piece;
    if (joined !== undefined && cellsOf(joined) <= width) lines[lines.length - 1] = joined;
    else if (lines.length < MOST_LINES) lines.push(cut(piece, width));
  }
  return lines;
}

const graphemes = new Intl.Segmenter();
/** East Asian wide and full-width characters, and emoji (https://www.unicode.org/reports/tr11/). */
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;

/** Cells that text takes on a terminal. */
function cellsOf(text: string): number {
  let cells = 0;
  for (const { segment } of graphemes.segment(text)) cells += WIDE.test(segment) ? 2 : 1;
  return cells;
}

function cut(text: string, width: number): string {
  let kept = '';
  for (const { segment } of graphemes.segment(text)) {
    if (cellsOf(kept + segment) > width) break;
    kept += segment;
  }
  return kept;
}

/** Without what would move the cursor. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ');
}
