import type { z } from 'zod';
import type { Task } from '../episode/task.ts';
import type { Awaitable, Environment, Player } from './contracts.ts';

/** An environment that can be asked for by name. */
export interface EnvironmentDefinition<P extends z.ZodType = z.ZodType> {
  readonly name: string;
  /** Raised when episodes are no longer comparable with those of the version before. */
  readonly version: number;
  readonly help: string;
  /** A strict object in which every parameter has a default. */
  readonly parameters: P;
  make(parameters: z.output<P>): Awaitable<Environment>;
  /** Answers after which an episode is over, whatever they are; not given where only the agent's limit ends it. */
  maxTurns?(parameters: z.output<P>): number;
  /** What to try it on where there is no dataset; one without prompt and label when not given. */
  readonly tasks?: readonly Task[];
  /** Who can play it without a model: for evaluation and the conformance suite. */
  players?(parameters: z.output<P>): Players;
}

export interface Players {
  /** Draws answers that can be read, without a look at the state. */
  readonly random?: Player;
  /** Plays well, and may know what is hidden. */
  readonly oracle?: Player;
}

/** Keeps the type of the parameters while a definition is written. */
export function defineEnvironment<P extends z.ZodType>(definition: EnvironmentDefinition<P>): EnvironmentDefinition<P> {
  return definition;
}
