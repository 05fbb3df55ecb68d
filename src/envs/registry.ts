import { z } from 'zod';
import { explain } from '../episode/explain.ts';
import type { Task } from '../episode/task.ts';
import { editDistance } from '../options/nearest.ts';
import { calculator } from './calculator.ts';
import { clientOf } from './clients/schemes.ts';
import { code } from './code/code.ts';
import type { EnvironmentFactory } from './contracts.ts';
import type { EnvironmentDefinition, Players } from './definition.ts';
import { textGames } from './games/gem/index.ts';
import { guessNumber } from './games/guess-number.ts';

/** Environments by name and version. */

const known = new Map<string, EnvironmentDefinition[]>();
registerEnvironment(calculator);
registerEnvironment(code);
registerEnvironment(guessNumber);
for (const definition of textGames) registerEnvironment(definition);

/** Makes an environment known under its name; a version that is known already is refused. */
export function registerEnvironment(definition: EnvironmentDefinition): void {
  const { name, version } = definition;
  const versions = known.get(name) ?? [];
  if (versions.some(other => other.version === version)) {
    throw new Error(`environment ${name}@${version} is registered already; raise its version or use another name`);
  }
  known.set(
    name,
    [...versions, definition].sort((a, b) => b.version - a.version),
  );
}

/** Every known environment: by name, the newest version first. */
export function listEnvironments(): EnvironmentDefinition[] {
  return [...known.keys()].sort().flatMap(name => known.get(name)!);
}

/** A factory of one environment for each episode; see `openEnvironment`. */
export function makeEnvironment(name: string, parameters: Readonly<Record<string, unknown>> = {}): EnvironmentFactory {
  return openEnvironment(name, parameters).make;
}

/** A known environment with its parameters: what playing and evaluating need of it. */
export interface OpenedEnvironment {
  readonly definition: EnvironmentDefinition;
  readonly make: EnvironmentFactory;
  /** Answers after which an episode is over; undefined where only the agent's limit ends it. */
  readonly maxTurns: number | undefined;
  /** At least one. */
  readonly tasks: readonly Task[];
  /** Undefined where the definition has none. */
  readonly players: Players | undefined;
}

/**
 * `name` may carry a version (`calculator@1`), else the newest is meant. Environments elsewhere go by their address
 * (clients/schemes.ts).
 * @throws Error naming the nearest known environments, or the parameter that is wrong: before the first episode
 */
export function openEnvironment(name: string, parameters: Readonly<Record<string, unknown>> = {}): OpenedEnvironment {
  return openDefinition(find(name), parameters, name);
}

/** The same for a definition that need not be known; `name` is how a fault speaks of it. */
export function openDefinition(
  definition: EnvironmentDefinition,
  parameters: Readonly<Record<string, unknown>> = {},
  name: string = definition.name,
): OpenedEnvironment {
  const parsed = definition.parameters.safeParse(parameters);
  if (!parsed.success) {
    throw new Error(`environment ${name}: ${unknownOf(definition, parameters) ?? explain(parsed.error, parameters)}`);
  }
  return {
    definition,
    make: () => definition.make(parsed.data),
    maxTurns: definition.maxTurns?.(parsed.data),
    tasks: definition.tasks ?? [{ id: definition.name, prompt: '', label: '', metadata: {} }],
    players: definition.players?.(parsed.data),
  };
}

/** Parameters that the definition does not have, with those that it has, nearest first; undefined when there are none. */
function unknownOf({ parameters: schema }: EnvironmentDefinition, given: object): string | undefined {
  // A file of the user's may bring schemas of another library.
  if (!(schema instanceof z.ZodType)) return undefined;
  const { properties } = z.toJSONSchema(schema, { unrepresentable: 'any' });
  const names = Object.keys(properties ?? {});
  const unknown = Object.keys(given).find(one => !names.includes(one));
  if (names.length === 0 || unknown === undefined) return undefined;
  const near = names.sort((a, b) => editDistance(a, unknown) - editDistance(b, unknown));
  return `unknown parameter ${JSON.stringify(unknown)}; it has, nearest first: ${near.join(', ')}`;
}

function find(name: string): EnvironmentDefinition {
  const elsewhere = clientOf(name);
  if (elsewhere !== undefined) return elsewhere;
  const [base, version] = name.split('@', 2) as [string, string?];
  const versions = known.get(base);
  if (versions === undefined) {
    // What a name goes on from is nearer than any other spelling.
    const distance = (one: string) => (base !== '' && one.startsWith(base) ? 0 : editDistance(one, base));
    const near = [...known.keys()].sort((a, b) => distance(a) - distance(b) || (a < b ? -1 : 1));
    throw new Error(
      `unknown environment ${JSON.stringify(name)}; known, nearest first: ${near.slice(0, 8).join(', ')}`,
    );
  }
  const found = version === undefined ? versions[0] : versions.find(one => String(one.version) === version);
  if (found !== undefined) return found;
  throw new Error(
    `environment ${base} has no version ${version}; known: ${versions.map(one => one.version).join(', ')}`,
  );
}
