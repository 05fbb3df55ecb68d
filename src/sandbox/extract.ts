import type { Language } from './contracts.ts';

const NAMES: Readonly<Record<Language, readonly string[]>> = {
  python: ['python', 'python3', 'py'],
  javascript: ['javascript', 'js', 'mjs', 'node'],
};

/**
 * The program of an answer: the last fenced block marked with the language, else the last fenced block, else all of
 * the text. A block that is never closed reaches to the end. In linear time.
 */
export function programOf(answer: string, language: Language): string {
  let last: string | undefined;
  let marked: string | undefined;
  let open: { readonly info: string; readonly lines: string[] } | undefined;
  const close = () => {
    if (open === undefined) return;
    const text = open.lines.join('\n');
    last = text;
    if (NAMES[language].includes(open.info)) marked = text;
    open = undefined;
  };
  for (const line of answer.split('\n')) {
    const isFence = line.startsWith('```');
    if (isFence && open !== undefined) close();
    else if (isFence) open = { info: line.slice(3).trim().toLowerCase(), lines: [] };
    else open?.lines.push(line);
  }
  close();
  return marked ?? last ?? answer;
}
