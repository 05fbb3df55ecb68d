/** Exit code after Ctrl-C. */
export const INTERRUPTED = 130;

export interface Interrupt {
  /** Aborts at the first SIGINT or SIGTERM: finish the step, write what must be kept, return. */
  readonly signal: AbortSignal;
  /** Stops listening. */
  dispose(): void;
}

/** What is used of `process`. */
export interface SignalSource {
  on(event: 'SIGINT' | 'SIGTERM', listener: () => void): unknown;
  off(event: 'SIGINT' | 'SIGTERM', listener: () => void): unknown;
  exit(code: number): void;
}

/** The first SIGINT or SIGTERM asks for an orderly end, the second one ends the process at once. */
export function onInterrupt(source: SignalSource, announce: (message: string) => void): Interrupt {
  const controller = new AbortController();
  const listener = () => {
    if (controller.signal.aborted) {
      source.exit(INTERRUPTED);
      return;
    }
    announce('interrupted: finishing the step; once more to stop at once');
    controller.abort(new Error('interrupted'));
  };
  source.on('SIGINT', listener);
  source.on('SIGTERM', listener);
  return {
    signal: controller.signal,
    dispose: () => {
      source.off('SIGINT', listener);
      source.off('SIGTERM', listener);
    },
  };
}
