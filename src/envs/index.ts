export { evaluate, formatNumber } from './arithmetic.ts';
export type {
  Action,
  Awaitable,
  Environment,
  EnvironmentContext,
  EnvironmentFactory,
  Reset,
  StepResult,
} from './contracts.ts';
export { defineEnvironment, type EnvironmentDefinition } from './definition.ts';
export { nim, nimPlayer } from './games/nim.ts';
export { listEnvironments, makeEnvironment, registerEnvironment } from './registry.ts';
export { type PoolOptions, resourcePool } from './resources/pool.ts';
export type { ResourcePool, ResourceSpec, Tool, ToolContext, ToolResult } from './tools/contracts.ts';
export { defineTool } from './tools/define.ts';
