import { vi } from 'vitest';

/** Waits until it is so, for as long as a busy machine may take. */
export function until(isSo: () => boolean): Promise<boolean> {
  return vi.waitUntil(isSo, { timeout: 30_000, interval: 5 });
}
