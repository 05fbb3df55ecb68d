import type { Options } from '../options/option.ts';
import { defaultOf } from './schema.ts';

type Intersection<U> = (U extends unknown ? (part: U) => void : never) extends (part: infer I) => void ? I : never;
type Flat<T> = { readonly [K in keyof T]: T[K] };

/**
 * Joins the options that the parts of a command declare. Throws on what no user should ever meet: a name or alias
 * declared twice, a name inside another one (`run` beside `run.dir` cannot both stand in a YAML file), a default that
 * a config file could not bring back.
 */
export function compose<const Parts extends readonly Options[]>(...parts: Parts): Flat<Intersection<Parts[number]>> {
  const composed: Record<string, Options[string]> = {};
  const taken = new Map<string, string>();
  const claim = (name: string, owner: string) => {
    const other = taken.get(name);
    if (other !== undefined) throw new Error(`option name ${name} is declared twice: by ${other} and by ${owner}`);
    taken.set(name, owner);
  };
  for (const part of parts) {
    for (const [name, option] of Object.entries(part)) {
      claim(name, name);
      for (const alias of [...(option.aliases ?? []), ...(option.short === undefined ? [] : [option.short])])
        claim(alias, name);
      const { required, value } = defaultOf(option);
      if (!required && value !== undefined && !option.schema.safeParse(value).success) {
        throw new Error(`the default of ${name} is not a value that ${name} accepts`);
      }
      composed[name] = option;
    }
  }
  for (const name of Object.keys(composed)) {
    const inside = Object.keys(composed).find(other => other.startsWith(`${name}.`));
    if (inside !== undefined) throw new Error(`option ${name} is also the beginning of option ${inside}`);
  }
  return composed as Flat<Intersection<Parts[number]>>;
}

/** Some of the options of a part, for a command that needs only these. */
export function pick<T extends Options, K extends keyof T & string>(options: T, ...names: K[]): Pick<T, K> {
  return Object.fromEntries(names.map(name => [name, options[name]])) as unknown as Pick<T, K>;
}
