import { z } from 'zod';
import type { Environment, Player } from '../../contracts.ts';
import { defineEnvironment, type EnvironmentDefinition } from '../../definition.ts';
import { PythonRandom } from './python-random.ts';

/**
 * Text games with the rules, moves and rewards of GEM (axon-rl/gem, commit 4069f2f), seed for seed, in wording of our own.
 *
 * What they share: a move is written in `\boxed{…}`, and the last one in the answer counts. An answer without a move ends
 * the episode at -0.1; a move that is not allowed costs a turn; a win ends it, on the last turn too; else the last turn
 * ends it.
 */
export interface TextGame {
  /** The rules, told once. */
  readonly instructions: string;
  readonly turns: number;
  /** What the player sees of the state; undefined where the history of the moves is all there is to see. */
  view(): string | undefined;
  /** All of the state, hidden parts too; what follows depends on it, the turns left and later draws. */
  state(): string;
  move(answer: string): Outcome;
  /** Reward of the move that used up the turns; that of the move itself where not given. */
  lastReward?(reward: number): number;
}

export interface Outcome {
  readonly kind: 'unreadable' | 'invalid' | 'valid' | 'won' | 'lost';
  /** What happened, told to the player. */
  readonly text: string;
  readonly reward: number;
}

export interface Turn extends Outcome {
  readonly terminated: boolean;
  /** The turns were used up. */
  readonly truncated: boolean;
}

export const unreadable = (expected: string): Outcome => ({
  kind: 'unreadable',
  text: `No move was found in the answer; expected ${expected}.`,
  reward: -0.1,
});
export const invalid = (text: string): Outcome => ({ kind: 'invalid', text, reward: 0 });
export const valid = (text: string, reward = 0): Outcome => ({ kind: 'valid', text, reward });
export const won = (text: string, reward = 1): Outcome => ({ kind: 'won', text, reward });
export const lost = (text: string, reward = 0): Outcome => ({ kind: 'lost', text, reward });

/** One turn by the rules that all games share. `turn` counts from 1. */
export function takeTurn(game: TextGame, answer: string, turn: number): Turn {
  const outcome = game.move(answer);
  const { kind, reward } = outcome;
  if (kind === 'unreadable') return { ...outcome, terminated: true, truncated: turn === game.turns };
  if (kind === 'won' || kind === 'lost') return { ...outcome, terminated: true, truncated: false };
  if (turn < game.turns) return { ...outcome, terminated: false, truncated: false };
  return {
    ...outcome,
    text: `${outcome.text} That was the last turn.`,
    reward: game.lastReward?.(reward) ?? reward,
    terminated: true,
    truncated: true,
  };
}

/** A game with its levels. `P` are its numbers: sizes, limits. */
export interface GameFamily<P extends object = object, G extends TextGame = TextGame> {
  /** As in the ids of GEM: `game:<name>-v0-<level>`. */
  readonly name: string;
  readonly help: string;
  readonly parameters: z.ZodType<P>;
  readonly levels: Readonly<Record<string, Partial<P>>>;
  /** Parameters of the level `random`, which draws the others anew for every episode. */
  readonly randomParameters: z.ZodType<Partial<P>>;
  draw(random: PythonRandom): Partial<P>;
  start(parameters: P, random: PythonRandom): G;
  /** A strong move, chosen with all of the state in sight. */
  oracle(game: G): string;
  /** A readable move, drawn without a look at the state. */
  randomMove(game: G, random: PythonRandom): string;
}

/** Keeps the types while a family is written. */
export function defineGame<P extends object, G extends TextGame>(family: GameFamily<P, G>): GameFamily<P, G> {
  return family;
}

/** Starts a game of a level; `random` draws what the level leaves open, then the start, then the example moves. */
export function startGame<P extends object, G extends TextGame>(
  family: GameFamily<P, G>,
  level: string,
  given: object,
  random: PythonRandom,
): G {
  const numbers = level === 'random' ? family.draw(random) : family.levels[level];
  if (numbers === undefined) throw new Error(`${family.name} has no level ${JSON.stringify(level)}`);
  return family.start(family.parameters.parse({ ...numbers, ...given }), random);
}

/** Every level as an environment that can be asked for by name. */
export function gameEnvironments<P extends object, G extends TextGame>(
  family: GameFamily<P, G>,
): EnvironmentDefinition[] {
  return [...Object.keys(family.levels), 'random'].map(level => {
    const start = (given: unknown) => (random: PythonRandom) => startGame(family, level, given as object, random);
    return defineEnvironment({
      name: `game:${family.name}-v0-${level}`,
      version: 1,
      help: family.help,
      parameters:
        level === 'random'
          ? family.randomParameters
          : z.preprocess(
              given => (typeof given === 'object' ? { ...family.levels[level], ...given } : given),
              family.parameters,
            ),
      make: given => gameEnvironment(start(given)),
      maxTurns: given => (given as { turns?: number }).turns ?? LONGEST_DRAWN,
      players: given => ({
        random: gamePlayer(start(given), (game, random) => family.randomMove(game, random)),
        oracle: gamePlayer(start(given), game => family.oracle(game)),
      }),
    });
  });
}

/** No level `random` draws more turns: 8 * 8 in Minesweeper. */
const LONGEST_DRAWN = 64;

/** Plays along in a game of its own, which the seed makes the same. Its draws come from a stream beside the game's. */
function gamePlayer<G extends TextGame>(
  start: (random: PythonRandom) => G,
  choose: (game: G, random: PythonRandom) => string,
): Player {
  return ({ seed }) => {
    const game = start(new PythonRandom(seed));
    const random = new PythonRandom((seed + 1_000_000) >>> 0);
    return () => {
      const answer = choose(game, random);
      game.move(answer);
      return answer;
    };
  };
}

/** Metrics of an episode: `won` and `unreadable` 0 or 1, `invalid` the number of moves that were not allowed. */
function gameEnvironment(start: (random: PythonRandom) => TextGame): Environment {
  let game: TextGame | undefined;
  let turn = 0;
  const suffix = () => [game?.view(), 'Your move?'].filter(part => part !== undefined).join('\n\n');
  const withView = (text: string) => `${text}\n\n${suffix()}`;
  return {
    reset(_task, { seed }) {
      turn = 0;
      game = start(new PythonRandom(seed));
      return {
        observation: [{ role: 'user', content: withView(game.instructions) }],
        suffix: suffix(),
        stateKey: game.state(),
      };
    },
    step({ actionText }) {
      if (game === undefined) throw new Error('a game is reset before its first step');
      turn += 1;
      const { kind, text, reward, terminated } = takeTurn(game, actionText, turn);
      return {
        reward,
        done: terminated,
        feedback: [{ role: 'user', content: terminated ? text : withView(text) }],
        ...(terminated ? {} : { suffix: suffix() }),
        stateKey: game.state(),
        isVoid: kind === 'unreadable',
        metrics: {
          won: kind === 'won' ? 1 : 0,
          invalid: kind === 'invalid' ? 1 : 0,
          unreadable: kind === 'unreadable' ? 1 : 0,
        },
      };
    },
  };
}
