import { loadAgentFile } from '../agents/file.ts';
import { multiTurn } from '../agents/multi-turn.ts';
import { ConfigError } from '../config/error.ts';
import type { EnvironmentFactory } from '../envs/contracts.ts';
import type { EnvironmentDefinition } from '../envs/definition.ts';
import { listEnvironments, type OpenedEnvironment, openDefinition, openEnvironment } from '../envs/registry.ts';
import { messageOf } from '../episode/failure.ts';
import { loadModule } from '../modules/load.ts';

/** What play and eval are asked to open: a name, with a version or not, or a file of the user's. */
export interface EnvironmentChoice {
  readonly name: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What playing and evaluating need of an environment. */
export interface ChosenEnvironment extends Omit<OpenedEnvironment, 'definition'> {
  /** As it was asked for. */
  readonly name: string;
  /** Undefined for a file that exports no definition. */
  readonly definition: EnvironmentDefinition | undefined;
}

const isFile = (name: string) => /\.[cm]?[jt]s$/.test(name);

/**
 * The environment of a name or a file. A file exports a definition as `definition`, with its parameters and players, or
 * what train.agent_func_path takes: an environment class or a function that makes one.
 * @throws ConfigError that names the nearest environments, the parameter that is wrong, or what the file lacks
 */
export async function openChosen({ name, parameters }: EnvironmentChoice, cwd: string): Promise<ChosenEnvironment> {
  try {
    return isFile(name) ? await openFile(name, parameters, cwd) : { name, ...openEnvironment(name, parameters) };
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

/** The names that are meant: `*` stands for any letters and `?` for one; a file is meant as it is. */
export function matchEnvironments(patterns: readonly string[]): string[] {
  const known = [...new Set(listEnvironments().map(({ name }) => name))];
  const names = patterns.flatMap(pattern => {
    if (isFile(pattern) || !/[*?]/.test(pattern)) return [pattern];
    const matched = known.filter(name => matches(pattern, name));
    if (matched.length === 0) throw new ConfigError([`no environment matches ${pattern}; known: ${known.join(', ')}`]);
    return matched;
  });
  return [...new Set(names)];
}

function matches(pattern: string, name: string): boolean {
  const literal = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${literal.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's').test(name);
}

async function openFile(
  path: string,
  parameters: Readonly<Record<string, unknown>>,
  cwd: string,
): Promise<ChosenEnvironment> {
  const { definition } = (await loadModule(path, 'environment file', cwd)).exports;
  if (isDefinition(definition)) return { name: path, ...openDefinition(definition, parameters, path) };
  if (Object.keys(parameters).length > 0) {
    throw new Error(`${path} exports no definition, so it has no parameters; leave out ${Object.keys(parameters)}`);
  }
  let make: EnvironmentFactory | undefined;
  const executor = await loadAgentFile(
    path,
    factory => {
      make = factory;
      return multiTurn(factory);
    },
    cwd,
  );
  await executor.close?.();
  if (make === undefined) {
    throw new Error(
      `${path} holds the executor '${executor.name}', which brings its own way of playing, no environment`,
    );
  }
  const tasks = [{ id: path, prompt: '', label: '', metadata: {} }];
  return { name: path, definition: undefined, make, maxTurns: undefined, tasks, players: undefined };
}

function isDefinition(value: unknown): value is EnvironmentDefinition {
  return typeof value === 'object' && value !== null && 'parameters' in value && 'make' in value && 'name' in value;
}
