import type { EnvironmentDefinition } from '../definition.ts';
import { gemDefinition } from './gem-bridge/definition.ts';
import { httpDefinition } from './http/definition.ts';
import { openEnvDefinition } from './openenv/definition.ts';

/** Kinds of addresses by what they begin with. */
const SCHEMES: Readonly<Record<string, (name: string) => EnvironmentDefinition>> = {
  'http:': httpDefinition,
  'https:': httpDefinition,
  'gem:': gemDefinition,
  'openenv:': openEnvDefinition,
};

/**
 * The environment that a name with a scheme stands for, in another process or on another machine:
 *
 *   http://key:…@host:port           one that `tokenloop serve-env` serves
 *   gem:game:GuessTheNumber-v0-easy   one of the Python package gem-llm
 *   openenv:http://host:8000          one of OpenEnv
 */
export function clientOf(name: string): EnvironmentDefinition | undefined {
  const scheme = /^[a-z]+:/.exec(name)?.[0];
  return scheme !== undefined && Object.hasOwn(SCHEMES, scheme) ? SCHEMES[scheme]!(name) : undefined;
}
