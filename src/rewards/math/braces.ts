/** What stands in the braces that open at `from` or behind white space there; undefined where none open or close. */
export function braced(text: string, from: number): { readonly inner: string; readonly end: number } | undefined {
  let at = from;
  while (text[at] === ' ') at++;
  if (text[at] !== '{') return undefined;
  const start = at + 1;
  for (let depth = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '\\') at++;
    else if (character === '{') depth++;
    else if (character === '}' && --depth === 0) return { inner: text.slice(start, at), end: at + 1 };
  }
  return undefined;
}
