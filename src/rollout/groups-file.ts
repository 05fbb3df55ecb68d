import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { messageOf } from '../episode/failure.ts';
import { parseEpisode, serializeEpisode } from '../episode/serialize.ts';
import type { EpisodeGroup } from './groups.ts';
import type { Backlog } from './pipeline.ts';

/**
 * The backlog of a pipeline as lines of JSON, read back exactly: first what was published and what was under way, then
 * one line for each waiting group.
 */

const head = z.strictObject({
  published: z.array(z.int()),
  started: z.array(z.strictObject({ group: z.string(), task: z.string() })),
});
const line = z.strictObject({ episodes: z.array(z.string()).min(1), greedy: z.string().optional() });

export async function writeBacklog(path: string, { waiting, started, published }: Backlog): Promise<void> {
  const groups = waiting.map(({ episodes, greedy }) => ({
    episodes: episodes.map(serializeEpisode),
    ...(greedy && { greedy: serializeEpisode(greedy) }),
  }));
  const lines = [{ published, started }, ...groups].map(value => `${JSON.stringify(value)}\n`);
  await writeFile(path, lines.join(''));
}

/** @throws Error naming the line that is not what `writeBacklog` writes */
export async function readBacklog(path: string): Promise<Backlog> {
  const [first = '', ...rest] = (await readFile(path, 'utf8')).split('\n').slice(0, -1);
  const at = <T>(number: number, what: string, read: () => T): T => {
    try {
      return read();
    } catch (error) {
      throw new Error(`${path}:${number}: not ${what}: ${messageOf(error)}`, { cause: error });
    }
  };
  const { published, started } = at(1, 'the head of a backlog', () => head.parse(JSON.parse(first)));
  return {
    published,
    started,
    waiting: rest.map((text, index) => at(index + 2, 'a group of episodes', () => readGroup(text))),
  };
}

function readGroup(text: string): EpisodeGroup {
  const { episodes, greedy } = line.parse(JSON.parse(text));
  const parsed = episodes.map(episode => parseEpisode(episode));
  const { task, group } = parsed[0]!;
  return { task, group, episodes: parsed, ...(greedy !== undefined && { greedy: parseEpisode(greedy) }) };
}
