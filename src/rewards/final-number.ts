/**
 * The number that an answer ends with, where it marks it as the solutions of GSM8K do: behind the last `####`, with or
 * without a dollar sign, thousands separators, a per cent sign or a full stop. Undefined when there is none.
 */
export function finalNumber(text: string): number | undefined {
  const marked = text.lastIndexOf('####');
  if (marked < 0) return undefined;
  const match = /^\s*(-?)\s*\$?\s*(-?)((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)\s*%?\s*\.?\s*(?:\n|$)/.exec(
    text.slice(marked + 4),
  );
  if (match === null) return undefined;
  const [, before, after, digits] = match;
  const value = Number(digits!.replaceAll(',', ''));
  return before || after ? -value : value;
}
