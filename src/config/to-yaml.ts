import { Document, Scalar, YAMLMap } from 'yaml';
import type { Options, Values } from '../options/option.ts';

/**
 * The resolved configuration as YAML: nested by the words of the names, each option below a comment that says what it
 * is. `resolve` reads it back to the same values; an option without a value is left out.
 */
export function toYaml<T extends Options>(values: Values<T>, options: T): string {
  const document = new Document({});
  for (const [name, { help, unit }] of Object.entries(options)) {
    const value = values[name];
    if (value === undefined) continue;
    const words = name.split('.');
    const key = new Scalar(words.pop()!);
    key.commentBefore = ` ${help}${unit ? ` [${unit}]` : ''}`;
    const node = document.createNode(value, { flow: true });
    group(document.contents as unknown as YAMLMap, words).add({ key, value: node });
  }
  return document.toString({ lineWidth: 0 });
}

function group(root: YAMLMap, words: readonly string[]): YAMLMap {
  let map = root;
  for (const word of words) {
    let inner = map.items.find(({ key }) => (key as Scalar).value === word)?.value as YAMLMap | undefined;
    if (inner === undefined) {
      inner = new YAMLMap();
      map.add({ key: new Scalar(word), value: inner });
    }
    map = inner;
  }
  return map;
}
