import { afterAll, beforeAll, expect, it } from 'vitest';
import { chooseAgent } from '../src/cli/agent.ts';
import { loadTrainingTasks } from '../src/cli/datasets.ts';
import { resolve } from '../src/config/load.ts';
import { rlOptions } from '../src/config/rl.ts';
import { validateEpisode } from '../src/episode/validate.ts';
import { byteRenderer } from '../src/testing/byte-tokenizer.ts';
import { testContext } from '../src/testing/executor-context.ts';
import { root } from './support/process.ts';

/** examples/nemo-gym: its server, its dataset and its options belong together. */

const { serve } = (await import(new URL('../examples/nemo-gym/server.js', import.meta.url).href)) as {
  serve(port: number): Promise<import('node:http').Server>;
};
const renderer = byteRenderer();
let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  server = await serve(0);
});
afterAll(() => void server.close());

it('is won by binary search for seven numbers of eight, and says so', async () => {
  const { port } = server.address() as { port: number };
  const argv = ['--config', 'examples/nemo-gym/rl.yaml', '--env.nemo_gym.url', `http://127.0.0.1:${port}`];
  const { values } = resolve(rlOptions, { cwd: root, argv });
  const rows = await loadTrainingTasks({ datasets: values['data.prompt_dataset'] }, values, {
    cwd: root,
    stderr: process.stderr,
  });
  expect(rows.length).toBe(256);
  const executor = await chooseAgent(values, { cwd: root });
  // Eight games at a time, each with its own session.
  const games = await Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      const task = rows.at(i)!;
      const context = testContext({ sample: i, limits: { maxTurns: 3 }, answers });
      const episode = await executor.run(task, context);
      validateEpisode(episode);
      return [episode];
    }),
  );
  expect(games.flat().map(({ score }) => score)).toEqual([1, 1, 1, 1, 1, 1, 1, 0]);
  expect(games.flat().map(({ steps }) => steps.length)).toEqual([3, 2, 3, 1, 3, 2, 3, 3]);
  const summary = await executor.summarize!(games, new AbortController().signal);
  expect(summary).toEqual({ 'nemo_gym/mean/reward': 0.875, 'nemo_gym/won': 0.875 });
});

function answers({ tokens }: { readonly tokens: Int32Array }): string {
  return guessAfter(renderer.decode(tokens, { special: true }));
}

/** The middle of what the hints leave of 1 to 8. */
function guessAfter(text: string): string {
  let [low, high] = [1, 8];
  for (const hint of text.match(/[<>](?=<\|im_end\|>)/g) ?? []) {
    const middle = (low + high) >> 1;
    if (hint === '<') high = middle - 1;
    else low = middle + 1;
  }
  return String((low + high) >> 1);
}
