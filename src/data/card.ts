import { parse } from 'yaml';
import { z } from 'zod';
import { messageOf } from '../episode/failure.ts';

/** A configuration of a dataset as the `configs` of its card describe it. */
export interface CardConfig {
  readonly name: string;
  readonly isDefault: boolean;
  /** Folder that the patterns start from; the repository without it. */
  readonly folder: string;
  /** Patterns of the files of each split; undefined where the names of the files tell. */
  readonly splits: ReadonlyMap<string, readonly string[]> | undefined;
  /** Whether the card names the splits; files without one are `train`. */
  readonly namesSplits: boolean;
}

const patterns = z.union([z.string().transform(one => [one]), z.array(z.string()).min(1)]);
const named = z.array(z.strictObject({ split: z.coerce.string().regex(/^\w+(\.\w+)*$/), path: patterns })).min(1);
const cardSchema = z.object({
  configs: z
    .array(
      z.object({
        config_name: z.coerce.string(),
        default: z.boolean().nullish(),
        data_dir: z.string().nullish(),
        data_files: z.union([patterns, named]).nullish(),
      }),
    )
    .nullish(),
});

/**
 * The configurations of a dataset card: of the YAML block `configs` at the head of a README.md. None when there is no
 * such block.
 * Format: https://huggingface.co/docs/hub/datasets-manual-configuration
 * @throws naming the fault, when the block is not in this format
 */
export function configsOfCard(card: string): readonly CardConfig[] {
  const [, head] = /^\s*---[\r\n]+([\s\S]*?)[\r\n]+---(?:[\r\n]|$)/.exec(card) ?? [];
  if (head === undefined || !/^configs\s*:/m.test(head)) return [];
  return (read(head).configs ?? []).map(({ config_name: name, default: isDefault, data_dir, data_files: files }) => ({
    name,
    isDefault: isDefault ?? false,
    folder: data_dir ?? '',
    ...splitsOf(files ?? undefined),
  }));
}

function read(head: string): z.infer<typeof cardSchema> {
  try {
    // The hub's own libraries read YAML 1.1.
    const result = cardSchema.safeParse(parse(head, { version: '1.1', logLevel: 'error' }));
    if (result.success) return result.data;
    const [issue] = result.error.issues;
    throw new Error(`${issue!.path.join('.')}: ${issue!.message}`);
  } catch (error) {
    throw new Error(`its README.md has a configs block that cannot be read (${messageOf(error)})`, { cause: error });
  }
}

function splitsOf(
  files: z.infer<typeof patterns> | z.infer<typeof named> | undefined,
): Pick<CardConfig, 'splits' | 'namesSplits'> {
  if (files === undefined) return { splits: undefined, namesSplits: false };
  const splits = new Map<string, readonly string[]>();
  for (const one of files) {
    if (typeof one === 'string') {
      splits.set('train', [...(splits.get('train') ?? []), one]);
    } else {
      if (splits.has(one.split))
        throw new Error(`its README.md names the split ${one.split} twice in one configuration`);
      splits.set(one.split, one.path);
    }
  }
  return { splits, namesSplits: typeof files[0] !== 'string' };
}

/** The configuration that is meant when none is named. */
export function defaultConfig(configs: readonly CardConfig[]): CardConfig | undefined {
  const usual = configs.filter(({ name, isDefault }) => configs.length === 1 || name === 'default' || isDefault);
  if (usual.length <= 1) return usual[0];
  throw new Error(`its README.md has several default configurations: ${usual.map(({ name }) => name).join(', ')}`);
}
