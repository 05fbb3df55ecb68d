import { readdirSync, readFileSync } from 'node:fs';

/**
 * Memory of a process with all its descendants, in bytes: what is resident and not shared with files. Limits of the
 * kernel's hold each process alone; this holds them together, for whoever looks often enough.
 */
export function memoryOf(pid: number): number {
  let pages = 0;
  const waiting = [pid];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    try {
      const [, resident = '0', shared = '0'] = readFileSync(`/proc/${next}/statm`, 'latin1').split(' ');
      pages += Number(resident) - Number(shared);
      for (const thread of readdirSync(`/proc/${next}/task`)) {
        const children = readFileSync(`/proc/${next}/task/${thread}/children`, 'latin1');
        waiting.push(...children.split(' ').filter(Boolean).map(Number));
      }
    } catch {
      // It has ended since it was listed, or this system has no /proc: nothing to add.
    }
  }
  return pages * PAGE;
}

const PAGE = 4096;
