import { availableParallelism } from 'node:os';
import { z } from 'zod';

/** How programs are kept in; declared once, for environments, rewards and tools alike. */
export const sandboxFields = {
  /** `bubblewrap` refuses to start where it cannot be had; `none` runs programs with this user's rights, and says so. */
  isolation: z.enum(['bubblewrap', 'none']).default('bubblewrap'),
  /** Wall time of one program, one cell of a session or one function call, in ms. */
  timeoutMs: z.int().min(50).max(600_000).default(5000),
  /** CPU time of one process, over all cells of a session, in s: what a session may burn between two cells. */
  cpuSeconds: z.int().min(1).max(86_400).default(60),
  /** Memory of a program with all its processes, in MiB. */
  memoryMiB: z.int().min(32).max(65_536).default(256),
  /** Processes and threads, those of the interpreter among them (Node has seven of its own). */
  processes: z.int().min(1).max(1024).default(32),
  openFiles: z.int().min(16).max(4096).default(128),
  /** The working directory, the only place that can be written to, in MiB; it counts to the memory of the machine. */
  scratchMiB: z.int().min(1).max(4096).default(16),
  /** Bytes of standard output, and as many of standard error, that are kept; the cut is visible. */
  outputBytes: z.int().min(64).max(16_777_216).default(65_536),
  /** Programs at once; more wait. */
  concurrency: z
    .int()
    .min(1)
    .max(1024)
    .default(2 * availableParallelism()),
  /** Interpreters of each language that are kept started ahead of their program, once a first one was asked for. */
  warm: z.int().min(0).max(1024).default(2),
  /** Path of the Python (3.8 or newer) that programs run with; the system's, else the first on PATH. */
  python: z.string().min(1).optional(),
  /** Path of the Node; the one that runs tokenloop. */
  node: z.string().min(1).optional(),
};

export const sandboxSettings = z.strictObject(sandboxFields);
export type SandboxSettings = z.output<typeof sandboxSettings>;
export type SandboxOptions = z.input<typeof sandboxSettings>;
