import type { Message, Task } from '../episode/task.ts';
import type { RewardFunction } from '../rewards/contracts.ts';
import { checkReward } from './checks.ts';
import type { Executor } from './contracts.ts';
import { recordEpisode } from './session.ts';

export interface SingleTurnOptions {
  /** Scores the answer. `perSample` makes one of a function that scores one answer. */
  readonly reward: RewardFunction;
  /** What the policy is given; the task's own prompt by default. */
  readonly prompt?: (task: Task) => string | readonly Message[];
  /** Tokens of the answer; the run's limit by default. */
  readonly maxNewTokens?: number;
}

/** One prompt, one answer, one reward. An answer cut by its length is scored too; its outcome is 'truncated'. */
export function singleTurn(options: SingleTurnOptions): Executor {
  const { reward, prompt: promptOf = (task: Task) => task.prompt } = options;
  return {
    name: 'single-turn',
    run: (task, context) =>
      recordEpisode(task, context, async session => {
        const { recorder, signal } = session;
        const { id, group, sample } = context;
        const given = await session.call('environment', 'prompt', () => promptOf(task));
        const prompt = await session.open(given, task.images);
        const answer = await session.answer(prompt, { maxTokens: options.maxNewTokens ?? context.limits.maxNewTokens });
        const promptText = session.textUpTo(prompt);
        const input = {
          task,
          prompt: promptText,
          text: answer.text,
          query: promptText + answer.text,
          label: task.label,
          episode: { id, group, sample, segments: recorder.segments, steps: recorder.steps },
          signal,
        };
        const { finishReason } = answer.generation;
        const places = { tokens: recorder.segments[answer.segment]!.tokens.length, steps: 1 };
        const scored = await session.call('reward', 'reward', async () => checkReward(await reward([input]), places));
        recorder.step({ segment: answer.segment, reward: 0, finishReason });
        recorder.addReward(scored.reward, scored);
        session.score = scored.score;
        session.addMetrics(scored.metrics);
        return finishReason === 'length' ? { kind: 'truncated', reason: 'length' } : { kind: 'done' };
      }),
  };
}
