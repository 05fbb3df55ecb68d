import { createReadStream } from 'node:fs';
import type { Episode } from './episode.ts';
import { parseEpisode } from './serialize.ts';

/**
 * The episodes of a JSONL file, one at a time. A writer that was killed leaves a last line without its line break:
 * when that line is not whole, it is left out and `onIncomplete` is told; without `onIncomplete` it is an error.
 * Anything else that cannot be read is an error that names file, line and field.
 */
export async function* readEpisodes(
  path: string,
  options: { readonly onIncomplete?: (message: string) => void } = {},
): AsyncGenerator<Episode, void, undefined> {
  let number = 0;
  let rest = '';
  for await (const chunk of createReadStream(path, { encoding: 'utf8' })) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      number += 1;
      if (line.trim() !== '') yield parseEpisode(line, `${path}:${number}`);
    }
  }
  if (rest.trim() === '') return;
  const where = `${path}:${number + 1}`;
  if (options.onIncomplete !== undefined && !isJson(rest)) {
    options.onIncomplete(`${where}: half-written last line of ${rest.length} characters left out`);
    return;
  }
  yield parseEpisode(rest, where);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // the only question asked here
  }
}
