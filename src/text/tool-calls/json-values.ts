/**
 * Where the JSON value (object or array) that begins at `start` ends, exclusive; undefined when it is never closed.
 * Brackets inside strings do not count. Linear in the text.
 */
export function endOfJson(text: string, start: number): number | undefined {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < text.length; i++) {
    const character = text[i];
    if (quoted) {
      if (character === '\\') i += 1;
      else if (character === '"') quoted = false;
    } else if (character === '"') {
      quoted = true;
    } else if (character === '{' || character === '[') {
      depth += 1;
    } else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) return i + 1;
      if (depth < 0) return undefined;
    }
  }
  return undefined;
}
