import { z } from 'zod';
import { defineEnvironment, type EnvironmentDefinition } from '../../definition.ts';
import { httpEnvironment, withoutKey } from './environment.ts';

const parameters = z.strictObject({
  /** Send everything that the policy saw with every step; only environments that read `observationText` need it. */
  observation_text: z.boolean().default(true),
  connect_timeout_ms: z.int().min(1).default(30_000),
});

/** The environment at an address; its parameters are those of the way there. @throws Error for an address that is none */
export function httpDefinition(url: string): EnvironmentDefinition {
  return defineEnvironment({
    name: withoutKey(url),
    version: 1,
    help: 'An environment that tokenloop serve-env serves.',
    parameters,
    make: ({ observation_text, connect_timeout_ms }) =>
      httpEnvironment({ url, observationText: observation_text, connectTimeoutMs: connect_timeout_ms })(),
  }) as EnvironmentDefinition;
}
