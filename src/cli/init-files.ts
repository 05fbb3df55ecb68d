/** What `tokenloop init env` writes. examples/new-environment holds the same files, compiled and tested. */

/** The name in the files below; replaced by that of the environment. */
const NAME = 'new-environment';

/** Paths inside the directory of the environment, with their content. `runner` is what the test is written for. */
export function environmentFiles(
  name: string,
  directory: string,
  runner: 'node' | 'vitest',
): Readonly<Record<string, string>> {
  const test = runner === 'node' ? TEST : TEST.replace("'node:test'", "'vitest'");
  return {
    'environment.ts': ENVIRONMENT.replaceAll(NAME, name),
    'environment.test.ts': test,
    'rl.yaml': RECIPE.replaceAll(NAME, directory),
    'tasks.jsonl': `${JSON.stringify({ input: name })}\n`.repeat(16),
  };
}

const ENVIRONMENT = `import { defineEnvironment, type Environment, z } from 'tokenloop/envs';

/**
 * Say the largest of some numbers. A wrong answer may be corrected, for half the reward each time.
 *
 *   user       3 9 4
 *   assistant  4
 *   user       larger
 *   assistant  9           reward 0.5
 *
 * Parameters all have defaults; raise the version when episodes are no longer comparable with earlier ones.
 */
export const definition = defineEnvironment({
  name: 'new-environment',
  version: 1,
  help: 'Say the largest of some numbers; a wrong answer may be corrected.',
  parameters: z.strictObject({
    count: z.int().min(2).max(20).default(3),
    tries: z.int().min(1).default(2),
  }),
  maxTurns: ({ tries }) => tries,
  // Who can play without a model: what learning starts from, and what it can reach.
  players: ({ count }) => ({
    random: ({ seed }) => {
      const numbers = draw(seed, count);
      const random = randomOf(~seed);
      return () => String(numbers[Math.floor(count * random())]);
    },
    oracle: ({ seed }) => {
      const answer = Math.max(...draw(seed, count));
      return () => String(answer);
    },
  }),
  make: ({ count, tries }): Environment => {
    let numbers: readonly number[] = [];
    return {
      reset(_task, { seed }) {
        numbers = draw(seed, count);
        const content = numbers.join(' ');
        return { observation: [{ role: 'user', content }], stateKey: content };
      },
      // Answers can be anything: what is not a number is a wrong answer, not an error.
      step({ actionText, turn }) {
        const said = /^\\s*\\d{1,9}\\s*$/.test(actionText) ? Number(actionText) : undefined;
        const right = said === Math.max(...numbers);
        const content = said === undefined ? 'a number' : said < Math.max(...numbers) ? 'larger' : 'smaller';
        return {
          reward: right ? 0.5 ** turn : 0,
          done: right || turn + 1 === tries,
          feedback: [{ role: 'user', content }],
          stateKey: \`\${numbers.join(' ')} \${content}\`,
          metrics: { invalid: said === undefined ? 1 : 0 },
        };
      },
    };
  },
});

/** Numbers below 100, the same for the same seed. */
function draw(seed: number, count: number): number[] {
  const random = randomOf(seed);
  return Array.from({ length: count }, () => Math.floor(100 * random()));
}

/** Uniform in [0, 1): mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
`;

const TEST = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from 'tokenloop/envs';
import { declareChecks, environmentSuite } from 'tokenloop/testing';
import { definition } from './environment.ts';

const parameters = definition.parameters.parse({});
const make = () => definition.make(parameters);
const task = { id: 'a', prompt: '', label: '', metadata: {} };
const { random, oracle } = definition.players!(parameters);

// What every environment must keep: the same episode for the same seed, hostile answers, an end, players as stated.
const checks = environmentSuite({
  make,
  tasks: [task],
  answers: ['7', '50', 'none'],
  maxTurns: parameters.tries,
  oracle: { player: oracle!, score: 1 },
  random: { player: random!, score: 0.325 },
});
declareChecks(checks, test);

test('halves the reward for a corrected answer', async () => {
  const environment = await make();
  const { observation } = await environment.reset(task, { seed: 1, signal: new AbortController().signal });
  assert.deepEqual(observation, [{ role: 'user', content: '62 0 52' }]);
  const answer = (actionText: string, turn: number) => environment.step({ actionText, turn } as Action);
  assert.equal((await answer('52', 0)).reward, 0);
  assert.equal((await answer('62', 1)).reward, 0.5);
});
`;

const RECIPE = `# Trains a model on the environment beside this file:
#
#   npx tokenloop rl --config new-environment/rl.yaml
#
# Replace the model by yours. tasks.jsonl has one row for each group of a step; the seed of a task makes its episode.
actor:
  model_name_or_path: HuggingFaceTB/SmolLM2-135M-Instruct
agent:
  env: new-environment/environment.ts
  env_parameters: {count: 3}
  max_turns: 2
data:
  prompt_dataset: new-environment/tasks.jsonl
rollout:
  batch_size: 8
  n_samples_per_prompt: 8
  max_new_tokens: 8
algo.advantage.estimator: group_norm
train:
  max_steps: 100
  num_episodes: 100
`;
