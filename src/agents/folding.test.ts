import { expect, it } from 'vitest';
import { toTrajectories } from '../episode/trajectory.ts';
import { validateEpisode } from '../episode/validate.ts';
import { testContext } from '../testing/executor-context.ts';
import { turnRows } from '../training/turn-rows.ts';
import { withoutReasoning } from './folding.ts';
import { type MultiTurnOptions, multiTurn } from './multi-turn.ts';

const task = { id: 't', prompt: 'p', label: '', metadata: {} };

async function run(answers: readonly string[], options: MultiTurnOptions, steps = 3) {
  const context = testContext({ answers: (_, i) => answers[i]! });
  const executor = multiTurn(
    () => ({
      reset: () => ({ observation: [{ role: 'user', content: 'begin' }] }),
      step: ({ turn }) => ({
        reward: turn,
        done: turn + 1 === steps,
        feedback: [{ role: 'user', content: `f${turn}` }],
      }),
    }),
    options,
  );
  const episode = await executor.run(task, context);
  validateEpisode(episode);
  const rows = toTrajectories(episode);
  return { episode, rows, shown: rows.map(({ tokens }) => context.renderer.decode(tokens, { special: true })) };
}

it('goes on with the beginning and the summary, as parts of one attempt', async () => {
  const { episode, shown } = await run(['a', 'b', 'SUMMARY', 'c'], { fold: { turns: 2, request: 'sum up' } });
  expect(shown).toHaveLength(2);
  expect(shown[0]).toMatch(/begin.*a<.*f0.*b<.*f1.*sum up.*SUMMARY/s);
  expect(shown[1]).toMatch(/begin.*SUMMARY.*c/s);
  expect(shown[1]).not.toMatch(/f0|f1|sum up/);
  expect(episode.leaves ?? 'parts').toBe('parts');
  expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 1, 0, 2]);
  expect(episode.metrics).toMatchObject({ turns: 3, folds: 1 });
});

it('folds when the context has grown to a number of tokens, never twice without a turn between', async () => {
  const { episode } = await run(['a', 'S', 'b', 'S', 'c'], { fold: { tokens: 1 } });
  expect(episode.outcome).toEqual({ kind: 'done' });
  expect(episode.metrics).toMatchObject({ turns: 3, folds: 2 });
  await expect(run([], { fold: {} })).rejects.toThrow(/a number of turns or of tokens/);
});

it('shows later turns a part of each answer, each turn in the context it was sampled in', async () => {
  const answers = ['<think>x</think>a', '<think>y</think>b', '<think>z</think>c'];
  const { rows, shown } = await run(answers, { keep: withoutReasoning });
  expect(shown).toHaveLength(3);
  expect(shown[2]).toMatch(/begin.*a<.*f0.*b<.*f1.*<think>z<\/think>c/s);
  expect(shown[2]).not.toMatch(/<think>[xy]/);
  expect(turnRows(rows)).toHaveLength(3);
});
