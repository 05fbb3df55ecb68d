import type { Learner, Sampler } from '../engines/contracts.ts';
import type { Task } from '../episode/task.ts';
import type { RolloutContext } from '../rollout/groups.ts';
import { onAverage } from './average.ts';
import { type Evaluation, type EvaluationPlan, evaluate, isDue } from './evaluate.ts';
import type { Baseline } from './gain.ts';

export interface EvaluatorParts {
  readonly tasks: readonly Task[];
  readonly plan: EvaluationPlan;
  readonly context: RolloutContext;
  readonly learner: Learner;
  readonly sampler: Sampler;
  readonly baseline: Baseline;
  /** Steps of the whole run. */
  readonly steps: number;
}

/** Evaluates the policy, and its moving average where the plan says so, when that is due after so many steps. */
export function evaluator(parts: EvaluatorParts): (step: number) => Promise<Evaluation | undefined> {
  const { tasks, plan, context, learner, sampler, baseline, steps } = parts;
  return async step => {
    if (!isDue(plan, step, steps)) return undefined;
    const { version } = learner;
    const evaluation = await evaluate(tasks, plan, context, { version, baseline });
    if (!plan.average) return evaluation;
    const averaged = await onAverage(learner, async () => {
      await sampler.publish(learner);
      return evaluate(tasks, plan, context, { version, baseline, prefix: 'eval_ema' });
    }).finally(() => sampler.publish(learner));
    const { 'timing/evaluation': seconds = 0, ...metrics } = averaged.metrics;
    const total = (evaluation.metrics['timing/evaluation'] ?? 0) + seconds;
    return { ...evaluation, metrics: { ...evaluation.metrics, ...metrics, 'timing/evaluation': total } };
  };
}
