/**
 * Whether a path matches a pattern as the dataset cards of the hub write them (fsspec's glob, and which of its matches
 * Python's datasets library keeps): `*`, `?` and `[a-c]` or `[!a-c]` stay within a folder, `**` is any number of
 * folders. Hidden files and folders and folders that begin with `__` match only when the pattern names such ones.
 * @throws for `**` beside other characters
 */
export function globMatcher(pattern: string): (path: string) => boolean {
  const segments = segmentsOf(pattern);
  const last = segments.length - 1;
  const source = segments.map((segment, i) => {
    if (segment === '**') return i === last ? '.+' : '(?:[^/]+/)*';
    if (segment.includes('**')) throw new Error(`the pattern ${pattern} has ** beside other characters`);
    return `${segmentSource(segment)}${i === last ? '' : '/'}`;
  });
  const form = new RegExp(`^${source.join('')}$`);
  const [hidden, special] = unusual(segments);
  return path => {
    if (!form.test(path)) return false;
    const [ofPath, specialOfPath] = unusual(segmentsOf(path));
    return ofPath === hidden && specialOfPath === special;
  };
}

/** Counts of hidden parts, and of folders that begin with `__`. */
function unusual(segments: readonly string[]): readonly [number, number] {
  const hidden = segments.filter(segment => segment.startsWith('.')).length;
  return [hidden, segments.slice(0, -1).filter(segment => segment.startsWith('__')).length];
}

function segmentsOf(path: string): readonly string[] {
  return path.split('/').filter(segment => segment !== '' && segment !== '.');
}

function segmentSource(segment: string): string {
  return segment.replace(/\[(!?)([^\]/]+)\]|[*?]|[.+^${}()|[\]\\]/g, (found, not: string | undefined, set?: string) => {
    if (set !== undefined) return `[${not ? '^/' : ''}${set.replace(/[\\^]/g, '\\$&')}]`;
    return found === '*' ? '[^/]*' : found === '?' ? '[^/]' : `\\${found}`;
  });
}
