import assert from 'node:assert/strict';
import type { EnvironmentFactory, Player } from '../envs/contracts.ts';
import type { Task } from '../episode/task.ts';
import type { Check } from './check.ts';
import { type Answers, playEpisode, playerScores, playOn, resetAndPlay, type Script } from './environment-episode.ts';
import { HOSTILE_ANSWERS } from './environment-hostile.ts';

export interface EnvironmentSuiteOptions {
  readonly make: EnvironmentFactory;
  /** At least one. */
  readonly tasks: readonly Task[];
  /** What a sensible policy may say; mixed with hostile answers. At least one. */
  readonly answers: readonly string[];
  /** The environment must be done after this many answers, whatever they are. Leave out if only the turn limit ends it. */
  readonly maxTurns?: number | undefined;
  /** A player that plays well, and the mean score that it reaches at least; 1 when not given. */
  readonly oracle?: { readonly player: Player; readonly score?: number | undefined } | undefined;
  /** A player that draws its answers, and its mean score to three decimals: the floor that learning starts from. */
  readonly random?: { readonly player: Player; readonly score: number } | undefined;
  /** Episodes of a check, with the seeds from 0; 20 when not given. */
  readonly episodes?: number | undefined;
}

/**
 * What every environment must keep, as checks for any test runner: `declareChecks(checks, it)` makes tests of them,
 * `runChecks` a report. The seeds are fixed, so that the scores are the same at every run.
 */
export function environmentSuite(options: EnvironmentSuiteOptions): Check[] {
  const { make, tasks, answers, maxTurns, oracle, random, episodes = 20 } = options;
  assert.ok(tasks.length > 0, 'the suite needs at least one task');
  assert.ok(answers.length > 0, 'the suite needs at least one answer');
  const turns = maxTurns ?? 32;
  const script = (n: number, said: Answers = mixture(answers, n)): Script => {
    return { task: tasks[n % tasks.length]!, seed: n, answers: said, turns };
  };
  const each = async (check: (n: number) => Promise<void>, count = episodes) => {
    for (let n = 0; n < count; n++) await check(n);
  };
  const meanScore = async (player: Player) => {
    const scores = await playerScores(options, player, episodes);
    return scores.reduce((sum, score) => sum + score, 0) / episodes;
  };

  return [
    {
      name: 'gives the same episode for the same seed, also when episodes are interleaved',
      run: () =>
        each(async n => {
          const alone = await playEpisode(make, script(n));
          const together = await Promise.all([n, n + 1, n].map(one => playEpisode(make, script(one))));
          assert.deepEqual(together[0], alone, 'another episode at the same time changes this one');
          assert.deepEqual(together[2], alone, 'another episode at the same time changes this one');
        }),
    },
    {
      name: 'gives an observation, finite rewards, and feedback until it is done',
      run: () => each(async n => void (await playEpisode(make, script(n)))),
    },
    ...when(maxTurns, limit => ({
      name: `is done after ${limit} answers, whatever they are`,
      run: () =>
        each(async n => {
          const [, ...results] = await playEpisode(make, script(n));
          assert.ok(results.at(-1)?.done, `still going after ${results.length} answers`);
        }),
    })),
    ...Object.entries(HOSTILE_ANSWERS).map(([what, text]) => ({
      name: `survives ${what}`,
      run: async () => {
        for (const finishReason of ['stop', 'length'] as const) {
          for (const before of [0, 1]) {
            const said: Answers = (_, turn) => (turn < before ? answers[0]! : text);
            await playEpisode(make, { ...script(0, said), turns: Math.min(turns, before + 2), finishReason });
          }
        }
      },
    })),
    { name: 'can be closed at any time, also after an error', run: () => closes(make, script(0)) },
    { name: 'is independent of its forks, if it can be forked', run: () => each(n => forks(make, script(n)), 4) },
    ...when(oracle, ({ player, score: least = 1 }) => ({
      name: `is played well by its oracle: a mean score of at least ${least}`,
      run: async () => {
        const mean = await meanScore(player);
        // Rewards are sums of floating-point parts of 1; a score is stated to three decimals.
        assert.ok(mean > least - 0.0005, `the oracle's mean score is ${mean.toFixed(3)}, below ${least}`);
      },
    })),
    ...when(random, ({ player, score }) => ({
      name: `gives the random player a mean score of ${score}`,
      run: async () => {
        const mean = await meanScore(player);
        assert.ok(Math.abs(mean - score) <= 0.0005 + 1e-9, `it is ${mean.toFixed(3)}; state that as random.score`);
      },
    })),
  ];
}

/** Sensible and hostile answers in an order that the number decides; sensible ones alone for even numbers. */
function mixture(answers: readonly string[], n: number): Answers {
  const short = Object.values(HOSTILE_ANSWERS).filter(text => text.length < 10_000);
  const all = n % 2 === 0 ? answers : [...answers, ...short];
  return (_, turn) => all[(n * 7 + turn * (n + 3)) % all.length]!;
}

async function closes(make: EnvironmentFactory, script: Script): Promise<void> {
  for (let stop = -1; stop < 3; stop++) {
    const environment = await make();
    if (stop >= 0) await resetAndPlay(environment, { ...script, turns: Math.min(stop, script.turns) });
    await environment.close?.();
  }
  // An answer before the reset, or after the abort, may be refused with an error.
  const early = await make();
  await playOn(early, { ...script, turns: 1 }, '').catch(() => undefined);
  await early.close?.();
  const late = await make();
  await resetAndPlay(late, { ...script, turns: 0 });
  await playOn(late, { ...script, turns: 1, signal: AbortSignal.abort() }, '').catch(() => undefined);
  await late.close?.();
}

async function forks(make: EnvironmentFactory, script: Script): Promise<void> {
  const [start, ...expected] = await playEpisode(make, script);
  for (const at of [0, 1, 2].filter(turn => turn < expected.length)) {
    const environment = await make();
    try {
      await resetAndPlay(environment, { ...script, turns: at });
      const seen = at === 0 ? start.observation : expected[at - 1]!.feedback!;
      const [same, other] = [await environment.fork?.(), await environment.fork?.()];
      if (same === undefined || other === undefined) return;
      const rest = expected.slice(at);
      await playOn(other, { ...script, answers: () => script.answers(seen, script.turns) }, seen, at);
      await other.close?.();
      assert.deepEqual(await playOn(same, script, seen, at), rest, 'a fork does not go on as the original would');
      await same.close?.();
      assert.deepEqual(await playOn(environment, script, seen, at), rest, 'a fork changes the original');
    } finally {
      await environment.close?.();
    }
  }
}

const when = <T>(value: T | undefined, check: (value: T) => Check): Check[] =>
  value === undefined ? [] : [check(value)];
