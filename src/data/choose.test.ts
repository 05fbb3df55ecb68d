import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { configsOfCard, defaultConfig } from './card.ts';
import { chooseFiles } from './choose.ts';
import { globMatcher } from './glob.ts';

type Files = Record<string, Record<string, readonly string[]>>;
interface Golden {
  readonly paths: readonly string[];
  readonly cards: Readonly<
    Record<string, { readonly head: string; readonly default?: string | null; readonly files?: Files }>
  >;
}
const golden: Golden = JSON.parse(
  readFileSync(new URL('../../tests/goldens/dataset-cards.json', import.meta.url), 'utf8'),
);
/** As the hub's files are listed. */
const PATHS = golden.paths.slice().sort();

const choose = (
  head: string,
  [config, split]: readonly [(string | undefined)?, string?],
  paths = PATHS,
  converted = false,
) =>
  chooseFiles(
    { paths, converted, card: async () => (head ? `---\n${head}\n---\n# Card\n` : undefined) },
    { name: 'org/set', config, split: { name: split ?? 'train', given: split !== undefined } },
  );

describe('the configs of a card', () => {
  it.each(Object.entries(golden.cards))('choose the files that Python datasets chooses: %s', async (_title, card) => {
    const configs = configsOfCard(`---\n${card.head}\n---\n`);
    if (card.default === undefined) {
      expect(() => defaultConfig(configs)).toThrow(/several default configurations/);
      return;
    }
    expect(defaultConfig(configs)?.name ?? null).toBe(card.default);
    for (const [config, splits] of Object.entries(card.files!)) {
      for (const [split, files] of Object.entries(splits)) {
        const chosen = choose(card.head, [config, split]);
        if (files.length === 0) await expect(chosen).rejects.toThrow(/matches no file/);
        else expect(await chosen, `${config} ${split}`).toEqual(files);
      }
    }
  });

  it('of a folder alone leave the splits to the names in it', async () => {
    const head = 'configs:\n- config_name: fr\n  data_dir: ./fr/';
    expect(await choose(head, [])).toEqual(['fr/train.jsonl']);
  });

  it('without splits serve where no split was asked for', async () => {
    const head = 'configs:\n- config_name: x\n  data_files: all.jsonl';
    const files = { paths: PATHS, converted: false, card: async () => `---\n${head}\n---\n` };
    const held = (given: boolean) => chooseFiles(files, { name: 'org/set', split: { name: 'test', given } });
    expect(await held(false)).toEqual(['all.jsonl']);
    await expect(held(true)).rejects.toThrow(/org\/set:x has no split "test"; it has train$/);
  });

  it('name the default of what the hub converted, whose files are told by their folders', async () => {
    const converted = ['en/train/0000.parquet', 'fr/train/0000.parquet', 'fr/test/0000.parquet'];
    const { head } = golden.cards.marked!;
    expect(await choose(head, [], converted, true)).toEqual(['fr/train/0000.parquet']);
    expect(await choose(head, ['en'], converted, true)).toEqual(['en/train/0000.parquet']);
    await expect(choose('', [], converted, true)).rejects.toThrow(/configurations en, fr; name one, as in org\/set:en/);
  });

  it('are not there: folders and names tell, and what describes the dataset is no data', async () => {
    const paths = ['dataset_infos.json', 'data/train.jsonl', 'data/test.jsonl'];
    for (const head of ['', 'license: mit', 'configs: []']) {
      expect(await choose(head, [], paths)).toEqual(['data/train.jsonl']);
    }
  });

  const one = (files: string) => `configs:\n- config_name: x\n  data_files: ${files}`;
  it.each([
    [golden.cards.several!.head, [], /org\/set has the configurations en, fr; name one, as in org\/set:en/],
    [golden.cards.several!.head, ['de'], /org\/set has no configuration de; it has en, fr/],
    [golden.cards.splits!.head, [undefined, 'dev'], /org\/set:default has no split "dev"; it has train, test/],
    [one('data/*.rst'), [], /org\/set:x is kept in data\/\*\.rst, and that matches only data\/notes\.rst; \.jsonl/],
    [one('https://host/x.jsonl'), [], /org\/set:x is kept at https:.*outside of its repository/],
    [one('data/**x'), [], /the pattern data\/\*\*x has \*\* beside other characters/],
    [
      one('{train: a}'),
      [],
      /org\/set: its README\.md has a configs block that cannot be read \(configs\.0\.data_files/,
    ],
    [one('[{split: a, path: b}, {split: a, path: c}]'), [], /org\/set: .* names the split a twice/],
    ['configs:\n- data_files: x', [], /configs\.0\.config_name/],
    ['configs: [', [], /org\/set: its README\.md has a configs block that cannot be read/],
  ] as const)('refuse what cannot be meant: %#', async (head, wanted, message) => {
    await expect(choose(head, wanted)).rejects.toThrow(message);
  });
});

it('patterns take every other character for itself', () => {
  const matches = globMatcher('a.b+(c)|{d}^$\\[x');
  expect(matches('a.b+(c)|{d}^$\\[x')).toBe(true);
  expect(matches('aXb+(c)|{d}^$\\[x')).toBe(false);
});
