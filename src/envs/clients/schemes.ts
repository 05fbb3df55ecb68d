import type { EnvironmentDefinition } from '../definition.ts';
import { httpDefinition } from './http/definition.ts';

/** Kinds of addresses by what they begin with. */
const SCHEMES: Readonly<Record<string, (name: string) => EnvironmentDefinition>> = {
  'http:': httpDefinition,
  'https:': httpDefinition,
};

/**
 * The environment that a name with a scheme stands for, in another process or on another machine:
 *
 *   http://key:…@host:port      one that `tokenloop serve-env` serves
 */
export function clientOf(name: string): EnvironmentDefinition | undefined {
  const scheme = /^[a-z]+:/.exec(name)?.[0];
  return scheme !== undefined && Object.hasOwn(SCHEMES, scheme) ? SCHEMES[scheme]!(name) : undefined;
}
