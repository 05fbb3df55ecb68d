import type { Learner } from '../engines/contracts.ts';
import { bigramPolicy } from './bigram-policy.ts';

/** One call of a learner's method, with what it was given. */
export type LearnerCall = {
  [Method in LearnerMethod]: { readonly method: Method; readonly args: Parameters<NonNullable<Learner[Method]>> };
}[LearnerMethod];

type LearnerMethod = Exclude<keyof Learner, 'contextLength' | 'version' | 'average'>;

export interface ScriptedLearnerOptions {
  /** Does the work; a bigram policy over the byte tokenizer's vocabulary by default. */
  readonly learner?: Learner;
  /** Runs before each call; what it throws is what the call rejects with, and a promise delays it. */
  readonly before?: (call: LearnerCall, index: number) => void | Promise<void>;
}

export interface ScriptedLearner extends Learner {
  /** Every call, in order. */
  readonly calls: readonly LearnerCall[];
}

/** A learner that records its calls and lets a script delay or fail them. */
export function scriptedLearner(options: ScriptedLearnerOptions = {}): ScriptedLearner {
  const { learner = bigramPolicy({ vocabularySize: 260 }).learner, before } = options;
  const calls: LearnerCall[] = [];
  const recorded =
    <A extends unknown[], R>(method: LearnerMethod, run: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      const call = { method, args } as unknown as LearnerCall;
      const index = calls.push(call) - 1;
      await before?.(call, index);
      return run(...args);
    };
  return {
    calls,
    contextLength: learner.contextLength,
    get version() {
      return learner.version;
    },
    forward: recorded('forward', learner.forward.bind(learner)),
    forwardBackward: recorded('forwardBackward', learner.forwardBackward.bind(learner)),
    optimizerStep: recorded('optimizerStep', learner.optimizerStep.bind(learner)),
    zeroGrad: recorded('zeroGrad', learner.zeroGrad.bind(learner)),
    updateReference: recorded('updateReference', learner.updateReference.bind(learner)),
    average: learner.average,
    save: recorded('save', learner.save.bind(learner)),
    load: recorded('load', learner.load.bind(learner)),
    export: recorded('export', learner.export.bind(learner)),
    close: recorded('close', learner.close.bind(learner)),
  };
}
