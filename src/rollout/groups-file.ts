import { readFile, writeFile } from 'node:fs/promises';
import { messageOf } from '../episode/failure.ts';
import { parseEpisode, serializeEpisode } from '../episode/serialize.ts';
import type { EpisodeGroup } from './groups.ts';

/** Groups as lines of JSON, read back exactly. */
export async function writeGroups(path: string, groups: readonly EpisodeGroup[]): Promise<void> {
  const lines = groups.map(({ episodes, greedy }) =>
    JSON.stringify({
      episodes: episodes.map(serializeEpisode),
      ...(greedy && { greedy: serializeEpisode(greedy) }),
    }),
  );
  await writeFile(path, lines.map(line => `${line}\n`).join(''));
}

export async function readGroups(path: string): Promise<EpisodeGroup[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1);
  return lines.map((line, index) => {
    try {
      const { episodes, greedy } = JSON.parse(line) as { episodes: string[]; greedy?: string };
      const parsed = episodes.map(episode => parseEpisode(episode));
      const { task, group } = parsed[0]!;
      return { task, group, episodes: parsed, ...(greedy !== undefined && { greedy: parseEpisode(greedy) }) };
    } catch (error) {
      throw new Error(`${path}:${index + 1}: not a group of episodes: ${messageOf(error)}`, { cause: error });
    }
  });
}
