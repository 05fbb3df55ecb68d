import { z } from 'zod';
import { explain } from '../../episode/explain.ts';
import { nearest } from '../../options/nearest.ts';
import type { EnvironmentService, QueueAgent, Registrable } from './contracts.ts';

/**
 * Agents and environment services by name. The registries belong to the process and not to this module, of which a
 * user's file may load another copy.
 */
type Known<T> = Map<string, Registrable<T>>;

function registryOf<T>(what: string): Known<T> {
  const key = Symbol.for(`tokenloop.${what}`);
  const shared = globalThis as unknown as Record<symbol, Known<T> | undefined>;
  shared[key] ??= new Map();
  return shared[key];
}

const agents = registryOf<QueueAgent<never>>('queue-agents');
const services = registryOf<EnvironmentService<never>>('environment-services');

/** Makes an agent known under a name, for `agent.type`. @throws Error for a name that is taken */
export function registerAgent(name: string, agent: Registrable<QueueAgent<never>>): void {
  register(agents, 'agent', name, agent);
}

/** Makes an environment known under a name, for `env.type`. @throws Error for a name that is taken */
export function registerEnvironmentService(name: string, service: Registrable<EnvironmentService<never>>): void {
  register(services, 'environment service', name, service);
}

/**
 * Makers of what is registered under the names, once for each episode.
 * @throws Error naming what is known, or the argument that is wrong: before the first episode
 */
export function agentMaker(name: string, args: Readonly<Record<string, unknown>> = {}): () => QueueAgent<never> {
  return maker(agents, 'agent', name, args);
}

export function serviceMaker(
  name: string,
  args: Readonly<Record<string, unknown>> = {},
): () => EnvironmentService<never> {
  return maker(services, 'environment service', name, args);
}

function register<T>(known: Known<T>, kind: string, name: string, made: Registrable<T>): void {
  if (known.has(name)) throw new Error(`an ${kind} '${name}' is registered already; use another name`);
  known.set(name, made);
}

function maker<T>(known: Known<T>, kind: string, name: string, args: Readonly<Record<string, unknown>>): () => T {
  const Made = known.get(name);
  if (Made === undefined) {
    const close = nearest(name, [...known.keys()]);
    const hint = close ? `did you mean ${close}? ` : '';
    const names = [...known.keys()].join(', ') || 'none';
    throw new Error(
      `no ${kind} '${name}' is registered; ${hint}There are: ${names}. train.agent_func_path names the file that registers it`,
    );
  }
  const schema = schemaOf(Made.args ?? {});
  const declared = Object.keys(schema.shape);
  for (const argument of Object.keys(args)) {
    if (declared.includes(argument)) continue;
    const close = nearest(argument, declared);
    const has = declared.length === 0 ? 'it takes none' : `it takes ${declared.join(', ')}`;
    throw new Error(`${kind} '${name}' has no argument ${argument}; ${close ? `did you mean ${close}? ` : ''}(${has})`);
  }
  const parsed = schema.safeParse(args);
  if (!parsed.success) throw new Error(`${kind} '${name}': ${explain(parsed.error, args)}`);
  return () => new Made(parsed.data as never);
}

function schemaOf(args: NonNullable<Registrable<unknown>['args']>): z.ZodObject {
  if (args instanceof z.ZodObject) return args;
  const typed = (value: unknown): z.ZodType =>
    typeof value === 'number' ? z.number() : typeof value === 'boolean' ? z.boolean() : z.string();
  return z.object(Object.fromEntries(Object.entries(args).map(([name, value]) => [name, typed(value).default(value)])));
}
