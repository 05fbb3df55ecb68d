import { z } from 'zod';
import type { EnvironmentFactory } from '../../contracts.ts';
import { defineEnvironment, type EnvironmentDefinition } from '../../definition.ts';
import { gemEnvironment } from './environment.ts';

const parameters = z.strictObject({
  python: z.string().min(1).default('python3'),
  processes: z.int().min(1).default(2),
  start_timeout_ms: z.int().min(1).default(60_000),
  /** Given to `gem.make`. */
  kwargs: z.record(z.string(), z.unknown()).default({}),
});

/** `gem:game:GuessTheNumber-v0-easy`: an environment of the Python package. */
export function gemDefinition(name: string): EnvironmentDefinition {
  const id = name.slice('gem:'.length);
  if (id === '') throw new Error('gem: names no environment; write gem:game:GuessTheNumber-v0-easy');
  let factory: EnvironmentFactory | undefined;
  return defineEnvironment({
    name,
    version: 1,
    help: 'An environment of the Python package gem-llm, in processes of its own.',
    parameters,
    make: ({ python, processes, start_timeout_ms, kwargs }) => {
      // Its processes are shared by all episodes.
      factory ??= gemEnvironment({ id, kwargs, python, processes, startTimeoutMs: start_timeout_ms });
      return factory();
    },
  }) as EnvironmentDefinition;
}
