import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { EnvironmentFactory } from '../envs/contracts.ts';
import type { Message } from '../episode/task.ts';
import { toTrajectories } from '../episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../episode/validate.ts';
import { testContext } from '../testing/executor-context.ts';
import { turnRows } from '../training/turn-rows.ts';
import { withoutReasoning } from './folding.ts';
import { type MultiTurnOptions, multiTurn } from './multi-turn.ts';
import type { ObservationOptions } from './observations.ts';

/** Of `tools/golden/observations.py`, where the format is told. */
interface Golden {
  readonly game: string;
  readonly given: readonly (readonly [observation: string, suffix: string])[];
  readonly answers: readonly string[];
  readonly shown: Readonly<Record<string, readonly string[]>>;
}
const goldens = JSON.parse(
  readFileSync(new URL('../../tests/goldens/games/observations.json', import.meta.url), 'utf8'),
) as Golden[];

/** Gives what is `given`, turn by turn, as text or as messages; the answer after the last one ends the episode. */
function replayed(given: Golden['given'], as: (text: string) => string | readonly Message[]): EnvironmentFactory {
  const told = (turn: number) => {
    const [text, suffix] = given[turn]!;
    return { content: as(text + suffix), ...(suffix === '' ? {} : { suffix }) };
  };
  return () => ({
    reset() {
      const { content, ...rest } = told(0);
      return { observation: content, ...rest };
    },
    step({ turn }) {
      if (turn + 1 >= given.length) return { reward: 1, done: true };
      const { content, ...rest } = told(turn + 1);
      return { reward: 0.25, feedback: content, done: false, ...rest };
    },
  });
}

const user = (content: string): Message[] => [{ role: 'user', content }];
const chat = (...said: Message[]) =>
  `${said.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join('')}<|im_start|>assistant\n`;

async function run(factory: EnvironmentFactory, answers: readonly string[], options: MultiTurnOptions) {
  const context = testContext({ answers: (_, i) => answers[i] ?? 'last' });
  const task = { id: 't', prompt: 'p', label: '', metadata: {} };
  const episode = await multiTurn(factory, options).run(task, context);
  validateEpisode(episode, { vocabularySize: context.renderer.vocabularySize });
  const rows = toTrajectories(episode);
  for (const row of rows) validateTrajectory(row);
  const seen = context.sampler.requests.map(({ tokens }) => context.renderer.decode(tokens, { special: true }));
  return { context, episode, rows, seen };
}

describe.each(goldens)('what is seen of $game', ({ given, answers, shown }) => {
  it.each(Object.entries(shown))('is what the wrapper of GEM shows: %s', async (name, expected) => {
    const [mode, length] = name.split(' ') as [ObservationOptions['mode'], string];
    const observations = { mode, maxHistory: Number(length) || undefined };
    const { episode, seen, rows } = await run(
      replayed(given, text => text),
      answers,
      { observations },
    );
    expect(seen).toEqual(expected);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.leaves ?? 'parts').toBe('parts');
    expect(episode.steps.map(({ reward }) => reward)).toEqual([...answers.map(() => 0.25), 1]);
    expect(turnRows(rows)).toHaveLength(answers.length + 1);
  });

  it('is the last observation, whole', async () => {
    const { seen, episode } = await run(
      replayed(given, text => text),
      answers,
      { observations: { mode: 'last' } },
    );
    const texts = given.map(([text, suffix]) => text + suffix);
    const nothing = texts.indexOf('');
    expect(seen).toEqual(nothing < 0 ? texts : texts.slice(0, nothing));
    if (nothing >= 0) expect(episode.outcome).toMatchObject({ kind: 'failed', message: /has no tokens/ });
  });

  it('is, of messages, the same text as one user says it', async () => {
    for (const mode of ['concat', 'concat_with_action'] as const) {
      const { seen } = await run(replayed(given, user), answers, { observations: { mode, maxHistory: 1 } });
      expect(seen).toEqual(shown[`${mode} 1`]!.map(text => chat(...user(text))));
    }
  });
});

describe('observations of messages', () => {
  const rules = { role: 'system', content: 'rules' };
  const game: Golden['given'] = [
    ['a', '/A'],
    ['b', '/B'],
    ['c', '/C'],
  ];
  const withSystem = (text: string) => (text === 'a/A' ? [rules, ...user(text)] : user(text));
  const said = (content: string): Message => ({ role: 'assistant', content });
  const see = async (mode: ObservationOptions['mode'], rest: Partial<MultiTurnOptions> = {}, maxHistory?: number) => {
    const answers = ['<think>?</think>x', 'y', 'z'];
    const options = { observations: { mode, maxHistory }, ...rest };
    return (await run(replayed(game, withSystem), answers, options)).seen[2];
  };

  it('keep the system message, and the state of the last one in its message', async () => {
    const x = '<think>?</think>x';
    expect(await see('last')).toBe(chat(rules, ...user('c/C')));
    expect(await see('concat')).toBe(chat(rules, ...user('a\nb\nc\n/C')));
    const all = [...user('a'), said(x), ...user('b'), said('y'), ...user('c/C')];
    expect(await see('concat_chat')).toBe(chat(rules, ...all));
    expect(await see('concat_chat', {}, 1)).toBe(chat(rules, ...all.slice(2)));
    expect(await see('concat_chat_on_reset')).toBe(`${chat(rules, ...user('a'))}${x}\nb\ny\nc\n/C`);
    expect(await see('concat_with_action', { keep: withoutReasoning })).toBe(chat(rules, ...user('a\nx\nb\ny\nc\n/C')));
  });

  it('are what `parsedAction` says of an answer', async () => {
    const cut: EnvironmentFactory = () => ({
      reset: () => ({ observation: 'q' }),
      step: ({ turn }) => ({ reward: 0, done: turn === 1, feedback: 'f', parsedAction: 'move' }),
    });
    const { seen } = await run(cut, ['a move, said at length'], { observations: { mode: 'concat_with_action' } });
    expect(seen[1]).toBe('q\nmove\nf\n');
  });
});

it('goes on in the same segment where the text goes on with what was sampled', async () => {
  const { rows, seen } = await run(
    replayed(goldens.find(({ game }) => game === 'bare')!.given, text => text),
    [],
    { observations: { mode: 'concat_with_action' }, maxNewTokens: 2 },
  );
  // Answers cut by their length have no token that ends them; the line that is begun behind each is the environment's.
  expect(rows).toHaveLength(1);
  expect(seen.at(-1)).toBe('go\nla\nnorth: a wall\nla\nla\na door\n');
});

it('measures episodes', async () => {
  const { episode } = await run(
    replayed(goldens[0]!.given, text => text),
    [],
    { track: true },
  );
  expect(episode.metrics).toMatchObject({ episode_return: 2, episode_length: 5 });
  expect(episode.metrics.episode_seconds).toBeGreaterThanOrEqual(0);
});

it('refuses histories that no mode has, and says what is wrong with a suffix', async () => {
  const factory = replayed(goldens[0]!.given, text => text);
  expect(() => multiTurn(factory, { observations: { mode: 'last', maxHistory: 2 } })).toThrow(/shows one observation/);
  expect(() => multiTurn(factory, { observations: { mode: 'concat', maxHistory: 0 } })).toThrow(/history is 0/);
  expect(() => multiTurn(factory, { observations: { mode: 'concat' }, fold: { turns: 2 } })).toThrow(/leave one out/);
  const wrong: EnvironmentFactory = () => ({
    reset: () => ({ observation: 'a board', suffix: 'cards' }),
    step: () => ({ reward: 0, done: true }),
  });
  const { episode } = await run(wrong, [], { observations: { mode: 'concat' } });
  expect(episode.outcome).toMatchObject({
    kind: 'failed',
    failure: 'environment',
    message: /does not end with "cards"/,
  });
});

it('ends, truncated, where the observation no longer fits the window', async () => {
  const given: Golden['given'] = [
    ['short', ''],
    ['x'.repeat(5000), ''],
  ];
  const { episode } = await run(
    replayed(given, text => text),
    [],
    { observations: { mode: 'last' } },
  );
  expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'tokens' });
});
