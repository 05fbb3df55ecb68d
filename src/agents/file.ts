import type { Environment, EnvironmentFactory } from '../envs/contracts.ts';
import { preview } from '../episode/explain.ts';
import { messageOf } from '../episode/failure.ts';
import type { Task } from '../episode/task.ts';
import { lineIn, loadModule, type UserModule } from '../modules/load.ts';
import { withAliases } from './aliases.ts';
import type { Executor } from './contracts.ts';
import { type RecordedAgentOptions, type RecordedRun, recordedAgent } from './recorded/recorded-agent.ts';

/** The exports that are looked for, in this order; the last two are OpenRLHF's names. */
const NAMES = ['default', 'AgentExecutor', 'AgentInstance'] as const;

/**
 * The agent of a user's file: an executor `{name, run}` (or a class of one), an environment class, or a function that
 * makes an environment. Environments may be written with OpenRLHF's names (aliases.ts).
 * A function exported as `agent` is a program that asks the policy at {baseURL, apiKey} and returns its reward: it is
 * recorded (recorded/recorded-agent.ts).
 * @param play makes an executor of an environment: a chain of turns, or a search
 * @param recorded how a program is answered
 * @throws Error that names the file, the export and what is missing
 */
export async function loadAgentFile(
  path: string,
  play: (factory: EnvironmentFactory) => Executor,
  cwd?: string,
  recorded?: Pick<RecordedAgentOptions, 'server' | 'strict'>,
): Promise<Executor> {
  const loaded = await loadModule(path, 'train.agent_func_path', cwd);
  const program = loaded.exports.agent;
  if (program !== undefined) {
    if (typeof program !== 'function')
      throw refused(path, loaded, `agent is ${preview(program)}, and must be a function`);
    const run = (_: Task, episode: RecordedRun) => (program as (episode: RecordedRun) => unknown)(episode);
    return recordedAgent({ ...recorded, run });
  }
  const name = NAMES.find(candidate => loaded.exports[candidate] !== undefined);
  const exported = name === undefined ? undefined : loaded.exports[name];
  if (isExecutor(exported)) return exported;
  if (typeof exported === 'function') {
    const { prototype } = exported as { prototype?: unknown };
    if (isExecutor(prototype)) return construct(exported as new () => Executor, path, loaded);
    if (isEnvironment(prototype)) return play(() => withAliases(new (exported as new () => Environment)()));
    if (isClass(exported)) throw refused(path, loaded, `the class ${exported.name} has ${missing(prototype)}`);
    return play(factory(exported as EnvironmentFactory, path));
  }
  const found = name === undefined ? 'nothing' : `${preview(exported)} as ${name}`;
  throw refused(path, loaded, `it exports ${found} where an agent is expected`);
}

function factory(make: EnvironmentFactory, path: string): EnvironmentFactory {
  return async () => {
    const made: unknown = await make();
    if (!isEnvironment(made)) {
      throw new Error(`${path}: its function gave ${preview(made)}; it must give an object with reset and step`);
    }
    return withAliases(made);
  };
}

function construct(executor: new () => Executor, path: string, loaded: UserModule): Executor {
  try {
    return new executor();
  } catch (error) {
    throw new Error(`train.agent_func_path ${path}${lineIn(loaded.file, error)}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function refused(path: string, loaded: UserModule, what: string): Error {
  return new Error(
    `train.agent_func_path ${path}: ${what} (${loaded.describe()}); export as default, AgentExecutor or AgentInstance ` +
      'an environment class with reset and step, a function that makes an environment, or an executor {name, run}',
  );
}

function missing(prototype: unknown): string {
  const has = (name: string) => typeof (prototype as Record<string, unknown>)[name] === 'function';
  const lacking = ['reset', 'step'].filter(name => !has(name));
  return `no method ${lacking.join(' and no method ')}, and no method run`;
}

function isClass(value: object): value is { readonly name: string } {
  return /^class\b/.test(Function.prototype.toString.call(value));
}

function isExecutor(value: unknown): value is Executor {
  return isObject(value) && typeof value.run === 'function';
}

function isEnvironment(value: unknown): value is Environment {
  return isObject(value) && typeof value.reset === 'function' && typeof value.step === 'function';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
