import { isDataFile } from './sources/file.ts';

/** A dataset of the Hugging Face hub. */
export interface DatasetReference {
  /** `organisation/name`; the oldest ones are called by their name alone. */
  readonly name: string;
  /** Branch, tag or commit of the repository's own files. */
  readonly revision?: string | undefined;
  readonly config?: string | undefined;
  readonly split?: string | undefined;
}

/**
 * Reads `organisation/name`, `organisation/name:config`, `organisation/name:config:split` and each of them with
 * `@revision` behind the name. A name alone (`gsm8k`) has no dot, as files have. Undefined for what has another form,
 * as the paths of files have.
 */
export function parseReference(text: string): DatasetReference | undefined {
  const match = /^(\w[\w.-]*\/\w[\w.-]*|\w[\w-]*)(?:@([\w./-]+))?(?::([\w.-]+)(?::([\w.-]+))?)?$/.exec(text);
  if (match === null || isDataFile(match[1]!)) return undefined;
  const [, name, revision, config, split] = match;
  return { name: name!, revision, config, split };
}
