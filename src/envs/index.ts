/** What parameters of environments and tools are declared with. */
export { z } from 'zod';
export type { Execution, Interpreter, Language, Program, Sandbox } from '../sandbox/contracts.ts';
export { judge, type TestCase, type Verdict } from '../sandbox/judge.ts';
export { openSandbox } from '../sandbox/sandbox.ts';
export type { SandboxOptions } from '../sandbox/settings.ts';
export { evaluate, formatNumber } from './arithmetic.ts';
export { type GemBridgeOptions, gemEnvironment } from './clients/gem-bridge/environment.ts';
export { type HttpEnvironmentOptions, httpEnvironment } from './clients/http/environment.ts';
export type { McpServerInput } from './clients/mcp/config.ts';
export { mcpTools } from './clients/mcp/tools.ts';
export { type OpenEnvOptions, openEnv } from './clients/openenv/environment.ts';
export { type InterpreterToolOptions, interpreterTool } from './code/interpreter-tool.ts';
export type {
  Action,
  Awaitable,
  Environment,
  EnvironmentContext,
  EnvironmentFactory,
  Player,
  Reset,
  StepResult,
} from './contracts.ts';
export { defineEnvironment, type EnvironmentDefinition, type Players } from './definition.ts';
export { nim, nimPlayer } from './games/nim.ts';
export {
  listEnvironments,
  makeEnvironment,
  type OpenedEnvironment,
  openEnvironment,
  registerEnvironment,
} from './registry.ts';
export { type PoolOptions, resourcePool } from './resources/pool.ts';
export { type EnvironmentServer, type EnvironmentServerOptions, serveEnvironment } from './serve/server.ts';
export type { ResourcePool, ResourceSpec, Tool, ToolContext, ToolResult } from './tools/contracts.ts';
export { defineTool } from './tools/define.ts';
