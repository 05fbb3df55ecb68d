import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Results, resultCharts } from '../examples/text-games/curves.ts';
import { multiTurn } from '../src/agents/multi-turn.ts';
import { singleTurn } from '../src/agents/single-turn.ts';
import { evaluate, formatNumber } from '../src/envs/arithmetic.ts';
import { makeEnvironment } from '../src/envs/registry.ts';
import type { Message, Task } from '../src/episode/task.ts';
import { loadRewardFile } from '../src/rewards/file/load.ts';
import { mean } from '../src/rollout/metrics.ts';
import { testContext } from '../src/testing/executor-context.ts';

/** The data of the examples is what their scripts say it is, and their environments and rewards can use it. */

const root = new URL('../examples/', import.meta.url);

function rows<T>(path: string): T[] {
  const text = readFileSync(new URL(path, root), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as T);
}
type Row = Pick<Task, 'label'> & { readonly prompt: string };
interface Demonstration {
  readonly messages: readonly Message[];
}
const toTask = (row: Row): Task => ({ id: row.prompt, metadata: {}, ...row });

/** Plays a demonstration's answers; the messages of the environment must be those of the demonstration. */
async function replay(name: string, task: Task, { messages }: Demonstration, environmentSeed = 0, maxTurns = 8) {
  const answers = messages.filter(({ role }) => role === 'assistant').map(({ content }) => content);
  const context = testContext({ answers: (_, index) => answers[index] ?? '', environmentSeed });
  const episode = await multiTurn(makeEnvironment(name), { maxTurns }).run(task, context);
  const shown = context.renderer.decode(context.sampler.requests.at(-1)!.tokens, { special: true });
  const expected = context.renderer.decode(context.renderer.prompt(messages.slice(0, -1)), { special: true });
  return { episode, shown, expected };
}

describe('calculator-agent', () => {
  const train = rows<Row>('calculator-agent/train.jsonl');
  const test = rows<Row>('calculator-agent/test.jsonl');

  it('has tasks that the calculator solves, in few characters', () => {
    expect([train.length, test.length]).toEqual([9372, 1150]);
    for (const { prompt, label } of [...train, ...test]) {
      expect(prompt).toMatch(/^[\d.+\-*/]{3,9}$/);
      expect(label.length).toBeLessThanOrEqual(6);
      expect(formatNumber(evaluate(prompt))).toBe(label);
    }
  });

  it('holds out expressions that do not occur in training', () => {
    const all = [...train, ...test].map(({ prompt }) => prompt);
    expect(new Set(all).size).toBe(all.length);
  });

  it('has demonstrations that the environment plays along with and rewards', async () => {
    const demonstrations = rows<Demonstration>('calculator-agent/demonstrations.jsonl');
    expect(demonstrations).toHaveLength(train.length);
    const calls = demonstrations.filter(({ messages }) => messages.length === 4).length;
    expect(calls / demonstrations.length).toBeCloseTo(0.3, 1);
    // A character-level model needs a token for each character, the role and the end of each message.
    const lengths = demonstrations.map(({ messages }) =>
      messages.reduce((n, { content }) => n + content.length + 2, 0),
    );
    expect(Math.max(...lengths)).toBeLessThanOrEqual(48);
    for (let i = 0; i < 40; i++) {
      const { episode, shown, expected } = await replay('calculator', toTask(train[i]!), demonstrations[i]!);
      expect(episode).toMatchObject({ outcome: { kind: 'done' }, score: 1, metrics: { correct: 1 } });
      expect(shown).toBe(expected);
    }
  });
});

describe('guess-number', () => {
  it('has demonstrations that play the game, at random', () => {
    const demonstrations = rows<Demonstration>('guess-number/demonstrations.jsonl');
    const guesses = demonstrations.flatMap(({ messages }) => messages.filter(({ role }) => role === 'assistant'));
    const counts = new Map<string, number>();
    for (const { content } of guesses) counts.set(content, (counts.get(content) ?? 0) + 1);
    expect([...counts.keys()].sort()).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']);
    for (const { messages } of demonstrations) {
      expect(messages[0]).toEqual({ role: 'user', content: '1-8' });
      expect(messages.length).toBeLessThanOrEqual(6);
    }
  });

  it('has a demonstration for whatever the environment hides', async () => {
    const [lost] = rows<Demonstration>('guess-number/demonstrations.jsonl').filter(
      ({ messages }) => messages.length === 6,
    );
    const [task] = rows<Row>('guess-number/train.jsonl').map(toTask);
    let fitting = 0;
    for (let seed = 0; seed < 8; seed++) {
      const { shown, expected } = await replay('guess-number', task!, lost!, seed);
      if (shown === expected) fitting += 1;
    }
    expect(fitting).toBeGreaterThan(0);
  });
});

describe('single-turn', () => {
  it('holds out sums and differences that do not occur in training', () => {
    const all = ['train', 'test'].flatMap(part => rows<Row>(`single-turn/${part}.jsonl`));
    expect(all).toHaveLength(610);
    expect(new Set(all.map(({ prompt }) => prompt)).size).toBe(610);
    for (const { prompt, label } of all) expect(formatNumber(evaluate(prompt))).toBe(label);
  });

  it.each([
    ['a15', 1, { answered: 1, correct: 1 }],
    ['a16', 0.5, { answered: 1, correct: 0 }],
    ['a-1', 1 / 17, { answered: 1, correct: 0 }],
    ['c7+8', 0, { answered: 0, correct: 0 }],
    ['15', 0, { answered: 0, correct: 0 }],
    ['a15.0', 0, { answered: 0, correct: 0 }],
  ])('scores %s with %d', async (answer, reward, metrics) => {
    const file = await loadRewardFile(new URL('single-turn/reward.js', root).pathname);
    const context = testContext({ answers: () => answer });
    const episode = await singleTurn({ reward: file }).run(toTask({ prompt: '7+8', label: '15' }), context);
    expect(episode).toMatchObject({ outcome: { kind: 'done' }, score: reward, metrics });
  });
});

describe('text-games', () => {
  const results = JSON.parse(readFileSync(new URL('text-games/results.json', root), 'utf8')) as Results;

  it('has demonstrations that the games play along with, good and careless moves mixed', async () => {
    const demonstrations = rows<Demonstration>('text-games/demonstrations.jsonl');
    expect(demonstrations).toHaveLength(600);
    let [moves, scores] = [0, 0];
    for (const [i, demonstration] of demonstrations.slice(0, 60).entries()) {
      const name = `game:${i % 2 === 0 ? 'FifteenPuzzle' : 'GuessTheNumber'}-v0-easy`;
      const { episode, shown, expected } = await replay(
        name,
        toTask({ prompt: '', label: '' }),
        demonstration,
        i >> 1,
        10,
      );
      expect(shown).toBe(expected);
      expect(episode).toMatchObject({ outcome: { kind: 'done' }, metrics: { unreadable: 0 } });
      moves += episode.steps.length;
      scores += episode.score;
    }
    expect(moves).toBeGreaterThan(200);
    expect(scores / 60).toBeGreaterThan(0.3);
    expect(scores / 60).toBeLessThan(0.9);
  });

  it('shows charts of the results, and their ends in the README', () => {
    const readme = readFileSync(new URL('text-games/README.md', root), 'utf8');
    for (const [name, svg] of Object.entries(resultCharts(results))) {
      expect(readFileSync(new URL(`text-games/${name}`, root), 'utf8')).toBe(svg);
      expect(readme).toContain(`](${name})`);
    }
    for (const [i, values] of results.guess.seeds.entries()) {
      expect(readme).toContain(`| ${i + 1} | ${values[0]!.toFixed(3)} | ${values.at(-1)!.toFixed(3)} |`);
    }
    for (const [i, step] of results.gigpo.steps.entries()) {
      if (![0, 10, 20, 30, 60].includes(step)) continue;
      const means = [results.gigpo, results.grpo].map(({ seeds }) => mean(seeds.map(values => values[i]!)).toFixed(3));
      expect(readme).toContain(`| ${step} | ${means.join(' | ')} |`);
    }
  });
});
