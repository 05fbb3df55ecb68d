import { createHash } from 'node:crypto';
import type { Rows } from '../data/rows.ts';
import type { Task } from '../episode/task.ts';

/** Digest of everything about the rows that decides a run: ids, prompts, images, labels and their order. */
export function rowsDigest(tasks: Rows<Task>): string {
  const hash = createHash('sha256');
  for (const task of tasks) hash.update(JSON.stringify([task.id, task.label, promptDigest(task)]));
  return hash.digest('hex');
}

/** What to say about held-out tasks whose prompt, images included, is trained on, too; undefined when there are none. */
export function overlapNotice(tasks: Rows<Task>, heldOut: readonly Task[]): string | undefined {
  const held = new Set(heldOut.map(promptDigest));
  const trained = new Set<string>();
  for (const task of tasks) {
    const digest = promptDigest(task);
    if (held.has(digest)) trained.add(digest);
  }
  const both = heldOut.filter(task => trained.has(promptDigest(task)));
  if (both.length === 0) return undefined;
  return `${both.length} of ${heldOut.length} evaluation tasks are trained on, too (the first is ${both[0]!.id}): what they score says little about new tasks`;
}

function promptDigest({ prompt, images = [] }: Task): string {
  const hash = createHash('sha256').update(JSON.stringify(prompt));
  for (const { data } of images) hash.update(`${data.length}:`).update(data);
  return hash.digest('base64');
}
