import { z } from 'zod';
import type { Generation } from '../engines/contracts.ts';
import type { Environment, Game, Reset, StepResult } from '../envs/contracts.ts';
import type { ToolResult } from '../envs/tools/contracts.ts';
import { explain, preview } from '../episode/explain.ts';
import { isThenable } from '../episode/failure.ts';
import { generationProblems } from '../episode/validate.ts';
import { type RewardOutput, type Scored, totalled } from '../rewards/contracts.ts';

/**
 * What users' code hands in, checked at the door: each function returns the value or throws an error that names the
 * field and what was there. They are called inside `boundary`, which adds whose side it was.
 */

const messages = z.array(z.looseObject({ role: z.string(), content: z.string() }));
const text = z.union([z.string(), messages], { error: 'expected text or an array of messages {role, content}' });
const images = z.array(z.object({ mediaType: z.string(), data: z.instanceof(Uint8Array) }));
const metrics = z.record(z.string(), z.number());

const reset = z.object({
  observation: text,
  images: images.optional(),
  stateKey: z.string().optional(),
  suffix: z.string().optional(),
});

const told = z.record(z.string(), text);
const gameReset = z.object({ observations: told, next: z.string() });
const gameStep = z.object({
  rewards: z.record(z.string(), z.number()).optional(),
  feedback: told.optional(),
  done: z.boolean(),
  next: z.string().optional(),
  score: z.number().optional(),
  metrics: metrics.optional(),
});

const stepResult = z.object({
  reward: z.number(),
  score: z.number().optional(),
  feedback: text.optional(),
  done: z.boolean(),
  samplingParams: z
    .strictObject({
      temperature: z.number().min(0).optional(),
      topP: z.number().positive().max(1).optional(),
      topK: z.int().min(0).optional(),
      minP: z.number().min(0).lt(1).optional(),
      maxTokens: z.int().min(1).optional(),
      stopStrings: z.array(z.string().min(1)).optional(),
    })
    .optional(),
  images: images.optional(),
  stateKey: z.string().optional(),
  suffix: z.string().optional(),
  parsedAction: z.string().optional(),
  isVoid: z.boolean().optional(),
  toolFailed: z.boolean().optional(),
  metrics: metrics.optional(),
});

const rewardOutput = z.object({
  reward: z.number(),
  score: z.number().optional(),
  metrics: metrics.optional(),
});
const processReward = rewardOutput.extend({
  reward: z.number().optional(),
  tokens: z.array(z.number()).optional(),
  steps: z.array(z.number()).optional(),
});

/** Checks what a call gave, now or when it is there: a call that does not wait costs no promise. */
export function checked<T, U>(given: T | PromiseLike<T>, check: (value: T) => U): U | PromiseLike<U> {
  return isThenable(given) ? given.then(check) : check(given);
}

export function checkEnvironment(value: Environment): Environment {
  if (typeof value?.reset === 'function' && typeof value.step === 'function') return value;
  throw new Error(`the factory gave ${preview(value)}; it must give an object with reset and step`);
}

export function checkReset(value: Reset): Reset {
  return check(reset, value);
}

type GameReset = Awaited<ReturnType<Game['reset']>>;
type GameStep = Awaited<ReturnType<Game['step']>>;

export function checkGameReset(value: GameReset): GameReset {
  return check(gameReset, value);
}

export function checkGameStep(value: GameStep): GameStep {
  const result = check(gameStep, value);
  if (!result.done && result.next === undefined) {
    throw new Error(
      'next: expected the seat whose turn it is, got nothing; only the last step (done: true) needs none',
    );
  }
  return result;
}

export function checkStepResult(value: StepResult): StepResult {
  const result = check(stepResult, value);
  if (!result.done && result.feedback === undefined) {
    throw new Error('feedback: expected text or messages, got nothing; only the last step (done: true) needs none');
  }
  return result;
}

/**
 * The score of one answer, out of the batch of one that it was scored in.
 * @param places how many process rewards it may have: tokens of the answer, where they are known, and steps of the episode
 */
export function checkReward(
  values: readonly (number | RewardOutput)[],
  places: { readonly tokens?: number; readonly steps: number },
): Scored {
  if (!Array.isArray(values)) {
    throw new Error(
      `expected an array of 1 scores, got ${preview(values)}; wrap a function of one answer in perSample`,
    );
  }
  if (values.length !== 1) throw new Error(`expected 1 scores, one for each answer, got ${values.length}`);
  const value: number | RewardOutput = values[0];
  if (typeof value === 'number') return check(rewardOutput, { reward: value });
  if (typeof value !== 'object' || value === null) {
    throw new Error(
      `expected a number or an object {reward, score?, metrics?, tokens?, steps?} for each answer, ` +
        `got ${preview(value)}`,
    );
  }
  const { tokens, steps } = value;
  const scored = totalled(check(tokens || steps ? processReward : rewardOutput, value));
  if (tokens && places.tokens === undefined) {
    throw new Error('tokens: rewards of tokens are for answers that are not searched for (agent.search.strategy)');
  }
  if (tokens && tokens.length !== places.tokens) {
    throw new Error(
      `tokens: expected ${places.tokens} rewards, one for each token of the answer, got ${tokens.length}`,
    );
  }
  if (steps && steps.length !== places.steps) {
    throw new Error(`steps: expected ${places.steps} rewards, one for each step of the episode, got ${steps.length}`);
  }
  return scored;
}

export function checkMetrics(value: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return check(metrics, value);
}

/** Ids beyond the tokenizer's are valid: checkpoints often have more embeddings than their tokenizer has tokens. */
export function checkGeneration(generation: Generation): Generation {
  const problems = generationProblems(generation, 'answer');
  if (problems.length > 0) throw new Error(problems.slice(0, 3).join('; '));
  return generation;
}

function check<T>(schema: z.ZodType, value: T): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return value;
  throw new Error(explain(parsed.error, value));
}

const toolResult = z.object({
  content: z.string(),
  failed: z.boolean().optional(),
  done: z.boolean().optional(),
  reward: z.number().optional(),
  metrics: metrics.optional(),
});

/** What a tool returned: a result as it is, anything else as the text of one. */
export function checkToolResult(value: unknown): ToolResult {
  if (typeof value === 'object' && value !== null && 'content' in value) return check(toolResult, value as ToolResult);
  return { content: asContent(value) };
}

function asContent(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined) return '';
  const text = JSON.stringify(value);
  if (text === undefined) throw new Error(`it gave ${preview(value)}; expected text or a value that JSON can say`);
  return text;
}
