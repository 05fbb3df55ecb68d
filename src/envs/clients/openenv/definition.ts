import { z } from 'zod';
import { defineEnvironment, type EnvironmentDefinition } from '../../definition.ts';
import { openEnv } from './environment.ts';

const parameters = z.strictObject({
  action_key: z.string().min(1).optional(),
  observation_key: z.string().min(1).optional(),
  reset: z.record(z.string(), z.unknown()).default({}),
  connect_timeout_ms: z.int().min(1).default(10_000),
});

/** `openenv:http://host:8000`. @throws Error for an address that is none */
export function openEnvDefinition(name: string): EnvironmentDefinition {
  const url = name.slice('openenv:'.length);
  openEnv({ url });
  return defineEnvironment({
    name,
    version: 1,
    help: 'An environment of OpenEnv, over its WebSocket.',
    parameters,
    make: ({ action_key, observation_key, reset, connect_timeout_ms }) =>
      openEnv({
        url,
        reset,
        actionKey: action_key,
        observationKey: observation_key,
        connectTimeoutMs: connect_timeout_ms,
      })(),
  }) as EnvironmentDefinition;
}
