import { preview } from '../../episode/explain.ts';
import { loadModule } from '../../modules/load.ts';
import { registerAgent, registerEnvironmentService } from './registry.ts';

/**
 * Loads a file for what it registers: by calls of `registerAgent` and `registerEnvironmentService`, or as the exports
 * `agents` and `environments`, objects of classes by name.
 * @throws Error for a name that is taken, or an export that is no class
 */
export async function loadRegistrations(path: string, cwd?: string): Promise<void> {
  const { exports } = await loadModule(path, 'train.agent_func_path', cwd);
  for (const [kind, register] of [
    ['agents', registerAgent],
    ['environments', registerEnvironmentService],
  ] as const) {
    const classes = exports[kind];
    if (classes === undefined) continue;
    if (typeof classes !== 'object' || classes === null) {
      throw new Error(
        `train.agent_func_path ${path}: ${kind} is ${preview(classes)}; expected an object of classes by name`,
      );
    }
    for (const [name, made] of Object.entries(classes as Record<string, unknown>)) {
      if (typeof made !== 'function') {
        throw new Error(`train.agent_func_path ${path}: ${kind}.${name} is ${preview(made)}; expected a class`);
      }
      register(name, made as never);
    }
  }
}
