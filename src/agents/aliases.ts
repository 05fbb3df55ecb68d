import type { Action, Environment, EnvironmentContext, Reset, StepResult } from '../envs/contracts.ts';
import type { Image, Task } from '../episode/task.ts';

/**
 * An environment written for OpenRLHF's agent interface (`utils/agent.py`: `reset(states)`, `step(states)`), as ours.
 * Both spellings may be mixed; ours wins where both are given.
 *
 * | there | here |
 * | --- | --- |
 * | `states.observation`, `states.label` of reset | the task's prompt and label, beside the task's own fields |
 * | `states.observation_text`, `action_text`, `label`, `sampling_params` of step | beside `observationText`, `actionText` … |
 * | `rewards` / `scores` / `environment_feedback` / `done` | `reward` / `score` / `feedback` / `done` |
 * | `sampling_params {temperature, top_p, max_tokens}` | `samplingParams`, for the turns that follow |
 * | `extra_logs` | `metrics`, numbers only |
 * | `environment_images` | `images` |
 */
export function withAliases(environment: Environment): Environment {
  let params: Record<string, unknown> = {};
  const { close } = environment;
  return {
    async reset(task: Task, context: EnvironmentContext) {
      const states = { ...task, observation: task.prompt };
      const result = await environment.reset(states, context);
      if (!isObject(result)) return result;
      const { environment_images: images, ...rest } = result as Reset & Record<string, unknown>;
      return withDefaults(rest, { images: imagesOf(images) }) as unknown as Reset;
    },
    async step(action: Action) {
      const states = {
        ...action,
        observation_text: action.observationText,
        action_text: action.actionText,
        sampling_params: params,
      };
      const result = await environment.step(states);
      if (!isObject(result)) return result;
      const { rewards, scores, environment_feedback, sampling_params, extra_logs, environment_images, ...rest } =
        result as StepResult & Record<string, unknown>;
      if (isObject(sampling_params)) params = { ...params, ...sampling_params };
      return withDefaults(rest, {
        reward: scalar(rewards),
        score: scalar(scores),
        feedback: environment_feedback,
        samplingParams: samplingOf(sampling_params),
        metrics: extra_logs === undefined ? undefined : numbers(extra_logs),
        images: imagesOf(environment_images),
      }) as unknown as StepResult;
    },
    ...(close === undefined ? {} : { close: () => close.call(environment) }),
  };
}

/** The values that are given, behind those that `own` has. */
function withDefaults(own: object, others: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = Object.entries(others).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(given), ...own };
}

/** A tensor of one element is handed over as an array of one. */
function scalar(value: unknown): unknown {
  return Array.isArray(value) && value.length === 1 ? value[0] : value;
}

function samplingOf(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { temperature, top_p: topP, max_tokens: maxTokens } = value;
  return withDefaults({}, { temperature, topP, maxTokens });
}

/** What is no number cannot be averaged, and is left out. */
function numbers(value: unknown): unknown {
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([name, one]) => [name, scalar(one)] as const);
  return Object.fromEntries(entries.filter(([, one]) => typeof one === 'number'));
}

function imagesOf(value: unknown): readonly Image[] | undefined {
  if (value === undefined || value === null) return undefined;
  return (Array.isArray(value) ? value : [value]) as readonly Image[];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
