import { Worker, type WorkerOptions } from 'node:worker_threads';

/** A thread whose entry is a file of this package: .ts from sources (tests, benches), which need a loader first. */
export function startThread(entry: URL, options: WorkerOptions = {}): Worker {
  if (!entry.pathname.endsWith('.ts')) return new Worker(entry, options);
  const loader = import.meta.resolve('tsx/esm/api');
  const code = `import('${loader}').then(({ register }) => { register(); return import('${entry.href}'); })`;
  return new Worker(code, { ...options, eval: true });
}

/** The file of this name beside `base`, with its ending: .ts from sources, .js when compiled. */
export function beside(base: string, name: string): URL {
  return new URL(`./${name}.${base.endsWith('.ts') ? 'ts' : 'js'}`, base);
}
