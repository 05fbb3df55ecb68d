import type { EnvironmentDefinition } from '../../definition.ts';
import { fifteenPuzzle } from './fifteen-puzzle.ts';
import { game2048 } from './game-2048.ts';
import { guessTheNumber } from './guess-the-number.ts';
import { hangman } from './hangman.ts';
import { mastermind } from './mastermind.ts';
import { minesweeper } from './minesweeper.ts';
import { sudoku } from './sudoku.ts';
import { type GameFamily, gameEnvironments } from './text-game.ts';
import { towerOfHanoi } from './tower-of-hanoi.ts';
import { wordle } from './wordle.ts';

/** All text games. A family is asked for moves of its own games alone. */
// biome-ignore lint/suspicious/noExplicitAny: the parameters of different games have nothing in common
export const GAMES: readonly GameFamily<any, any>[] = [
  fifteenPuzzle,
  game2048,
  guessTheNumber,
  hangman,
  mastermind,
  minesweeper,
  sudoku,
  towerOfHanoi,
  wordle,
];

/** Every level of every text game. */
export const textGames: readonly EnvironmentDefinition[] = GAMES.flatMap(gameEnvironments);
