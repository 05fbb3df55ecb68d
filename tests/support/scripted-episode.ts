import type { Executor } from '../../src/agents/contracts.ts';
import type { Task } from '../../src/episode/task.ts';
import { toTrajectories } from '../../src/episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../../src/episode/validate.ts';
import { type TestContextOptions, testContext } from '../../src/testing/executor-context.ts';
import type { Renderer } from '../../src/text/renderer.ts';

/** One episode of an executor, validated: its answers are the lines, in order. Gives what the policy was shown, too. */
export async function scriptedEpisode(
  executor: Executor,
  task: Task,
  lines: readonly string[] | NonNullable<TestContextOptions['answers']>,
  context: TestContextOptions & { readonly renderer: Renderer },
) {
  const { renderer } = context;
  const test = testContext({
    answers: typeof lines === 'function' ? lines : (_, index) => lines[index] ?? 'out of lines',
    ...context,
    limits: { maxNewTokens: 400, ...context.limits },
  });
  const episode = await executor.run(task, test);
  validateEpisode(episode, { vocabularySize: renderer.vocabularySize });
  for (const trajectory of toTrajectories(episode)) validateTrajectory(trajectory);
  const seen = test.sampler.requests.map(({ tokens }) => renderer.decode(tokens, { special: true }));
  return { episode, seen, test };
}
