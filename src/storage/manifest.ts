import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { z } from 'zod';

/** The list of a directory's files with their checksums, written when they are all there: what tells whole from damaged. */

const MANIFEST = 'manifest.json';

const Manifest = z.object({
  format: z.literal(1),
  files: z.array(z.object({ path: z.string(), bytes: z.number().int().nonnegative(), sha256: z.string() })),
});

/** Waits until every file below `directory` is on the disk, then writes `manifest.json` over them. */
export async function writeManifest(directory: string): Promise<void> {
  const files: z.infer<typeof Manifest>['files'] = [];
  for (const path of filesBelow(directory)) files.push({ path, ...(await digest(join(directory, path), 'r+')) });
  await writeFile(join(directory, MANIFEST), `${JSON.stringify({ format: 1, files }, null, 1)}\n`, { flush: true });
}

/** What is wrong with a directory that should agree with its manifest, naming the file; undefined when nothing is. */
export async function findDamage(directory: string): Promise<string | undefined> {
  const path = join(directory, MANIFEST);
  let files: z.infer<typeof Manifest>['files'];
  try {
    files = Manifest.parse(JSON.parse(readFileSync(path, 'utf8'))).files;
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return missing ? `${path} is missing, so it was never complete` : `${path} is damaged`;
  }
  for (const { path, bytes, sha256 } of files) {
    const file = join(directory, path);
    const size = statSync(file, { throwIfNoEntry: false })?.size;
    if (size === undefined) return `${file} is missing`;
    if (size !== bytes) return `${file} has ${size} bytes instead of ${bytes}`;
    if ((await digest(file, 'r')).sha256 !== sha256) return `${file} does not have the content that was written`;
  }
  return undefined;
}

/** Bytes of all files below a directory. */
export function sizeOf(directory: string): number {
  return filesBelow(directory).reduce((sum, path) => sum + statSync(join(directory, path)).size, 0);
}

/** Paths relative to the directory, with forward slashes, sorted. */
function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(directory, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
}

/** Size and checksum; of a file opened for writing also that it is on the disk. */
async function digest(path: string, mode: 'r' | 'r+'): Promise<{ bytes: number; sha256: string }> {
  const file = await open(path, mode);
  try {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of file.createReadStream({ highWaterMark: 1 << 20, autoClose: false })) {
      hash.update(chunk as Buffer);
      bytes += (chunk as Buffer).length;
    }
    if (mode === 'r+') await file.sync();
    return { bytes, sha256: hash.digest('hex') };
  } finally {
    await file.close();
  }
}
