import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { z } from 'zod';
import type { Message } from '../episode/task.ts';
import { evaluate, formatNumber } from './arithmetic.ts';
import type { Action, StepResult } from './contracts.ts';
import { defineEnvironment } from './definition.ts';

/**
 * Arithmetic with a calculator at hand, written shortly enough for a character-level model:
 *
 *   user       130+220
 *   assistant  c130+220     a call (`c`); the calculator answers with a tool message
 *   tool       350
 *   assistant  a350         an answer (`a`) ends the episode: reward 1 if it is the label, character by character
 *
 * The policy may answer at once. A call beyond the allowed number, a call that is not arithmetic, an answer cut by its
 * length and anything else get the tool message `e`. Metrics: `tool_use` (a call was answered with a number) and
 * `correct`, each 0 or 1 in an episode.
 */
export const calculator = defineEnvironment({
  name: 'calculator',
  version: 1,
  help: 'Arithmetic with a calculator at hand: answer at once (a350) or call it first (c130+220).',
  parameters: z.strictObject({
    /** Calls that are answered, per episode. */
    calls: z.int().min(0).default(1),
  }),
  tasks: [
    { id: 'addition', prompt: '130+220', label: '350', metadata: {} },
    { id: 'product', prompt: '12*12-4', label: '140', metadata: {} },
  ],
  players: () => ({
    // Numbers to 999; it calls or answers, each half of the time.
    random: ({ seed }) => {
      const dice = xoroshiro128plus(seed | 0);
      const number = () => uniformInt(dice, 0, 999);
      return () => (uniformInt(dice, 0, 1) === 0 ? `c${number()}+${number()}` : `a${number()}`);
    },
    oracle: ({ task }) => {
      return () => `a${task.label}`;
    },
  }),
  make({ calls }) {
    let left = calls;
    let usedTool = false;
    /** The number that a call gives, undefined if it is refused. */
    const call = ({ actionText, finishReason }: Action): string | undefined => {
      if (finishReason === 'length' || !actionText.startsWith('c') || left <= 0) return undefined;
      try {
        const result = formatNumber(evaluate(actionText.slice(1)));
        left -= 1;
        return result;
      } catch {
        return undefined; // not arithmetic, or too large: the policy reads `e`
      }
    };
    return {
      reset({ prompt }) {
        const observation: readonly Message[] =
          typeof prompt === 'string' ? [{ role: 'user', content: prompt }] : prompt;
        return { observation, stateKey: 'start' };
      },
      step(action): StepResult {
        if (action.finishReason !== 'length' && action.actionText.startsWith('a')) {
          const correct = action.actionText.slice(1) === action.label ? 1 : 0;
          return { reward: correct, done: true, metrics: { tool_use: 0, correct } };
        }
        const content = call(action);
        const first = content !== undefined && !usedTool;
        usedTool ||= first;
        return {
          reward: 0,
          done: false,
          feedback: [{ role: 'tool', content: content ?? 'e' }],
          stateKey: `${left} ${content ?? 'e'}`,
          isVoid: !/^[ac]/.test(action.actionText),
          toolFailed: content === undefined && action.actionText.startsWith('c'),
          metrics: { tool_use: first ? 1 : 0, correct: 0 },
        };
      },
    };
  },
});
