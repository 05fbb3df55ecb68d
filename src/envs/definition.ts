import type { z } from 'zod';
import type { Environment } from './contracts.ts';

/** An environment that can be asked for by name. */
export interface EnvironmentDefinition<P extends z.ZodType = z.ZodType> {
  readonly name: string;
  /** Raised when episodes are no longer comparable with those of the version before. */
  readonly version: number;
  readonly help: string;
  /** A strict object in which every parameter has a default. */
  readonly parameters: P;
  make(parameters: z.output<P>): Environment;
}

/** Keeps the type of the parameters while a definition is written. */
export function defineEnvironment<P extends z.ZodType>(definition: EnvironmentDefinition<P>): EnvironmentDefinition<P> {
  return definition;
}
