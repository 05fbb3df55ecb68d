/** A checkpoint as rotation sees it. */
export interface Kept {
  readonly step: number;
  readonly bytes: number;
}

export interface RotationLimits {
  /** Checkpoints beside the best, ≥ 1. */
  readonly maxCount: number;
  /** Bytes of all of them, the best included; no limit when not given. */
  readonly maxBytes?: number | undefined;
  /** Step just written: it is never deleted. */
  readonly newest: number;
  /** Step of the best one: it is never deleted. */
  readonly best?: number | undefined;
}

/**
 * Steps whose checkpoints go, oldest first, until both limits hold or only the newest and the best are left. Checkpoints
 * of later steps than the newest are damaged ones that a resumed run passed over: they go in any case.
 */
export function superseded(all: readonly Kept[], { maxCount, maxBytes = Infinity, newest, best }: RotationLimits) {
  const ordered = [...all].sort((a, b) => a.step - b.step);
  const gone = ordered.filter(({ step }) => step > newest).map(({ step }) => step);
  const left = ordered.filter(({ step }) => step <= newest);
  const tooMany = () => left.filter(({ step }) => step !== best).length > maxCount;
  const tooLarge = () => left.reduce((sum, { bytes }) => sum + bytes, 0) > maxBytes;
  while (tooMany() || tooLarge()) {
    const at = left.findIndex(({ step }) => step !== newest && step !== best);
    if (at < 0) break;
    gone.push(left.splice(at, 1)[0]!.step);
  }
  return gone;
}
