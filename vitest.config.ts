import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    setupFiles: ['tests/support/properties.ts'],
    pool: 'forks',
    // Without this vitest leaves a core to itself, and takes the files one by one on a machine of two.
    maxWorkers: availableParallelism(),
  },
});
