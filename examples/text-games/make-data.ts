/**
 * Writes what the games are learned with:
 *
 *   npx tsx examples/text-games/make-data.ts
 *
 * demonstrations.jsonl, for the warm start: games of a careless player, who makes a good move in one of three turns and
 * draws the others without a look; train.jsonl and test.jsonl, one row for each game, all alike: its seed makes the game.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Action } from '../../src/envs/contracts.ts';
import { GAMES } from '../../src/envs/games/gem/index.ts';
import { PythonRandom } from '../../src/envs/games/gem/python-random.ts';
import { startGame } from '../../src/envs/games/gem/text-game.ts';
import { makeEnvironment } from '../../src/envs/registry.ts';
import type { Message } from '../../src/episode/task.ts';

const GOOD_MOVES = 1 / 3;
const dice = new PythonRandom(0);

/** The conversation of one game. The player knows the state by playing along. */
async function play(family: (typeof GAMES)[number], seed: number): Promise<{ messages: Message[] }> {
  const environment = await makeEnvironment(`game:${family.name}-v0-easy`)();
  const game = startGame(family, 'easy', {}, new PythonRandom(seed));
  const task = { id: `${seed}`, prompt: 'game', label: '', metadata: {} };
  const { observation } = await environment.reset(task, { seed, signal: new AbortController().signal });
  const messages = [...(observation as readonly Message[])];
  for (let turn = 0; ; turn++) {
    const actionText = dice.random() < GOOD_MOVES ? family.oracle(game) : family.randomMove(game, dice);
    game.move(actionText);
    messages.push({ role: 'assistant', content: actionText });
    const { done, feedback } = await environment.step({ actionText, turn, task } as unknown as Action);
    if (done) return { messages };
    messages.push(...(feedback as readonly Message[]));
  }
}

function write(name: string, rows: readonly unknown[]): void {
  writeFileSync(join(import.meta.dirname, name), rows.map(row => `${JSON.stringify(row)}\n`).join(''));
  console.log(`${name}: ${rows.length} rows`);
}

const families = GAMES.filter(({ name }) => name === 'GuessTheNumber' || name === 'FifteenPuzzle');
const demonstrations: { messages: Message[] }[] = [];
for (let seed = 0; seed < 300; seed++) {
  for (const family of families) demonstrations.push(await play(family, seed));
}
write('demonstrations.jsonl', demonstrations);
const games = (count: number) => Array.from({ length: count }, () => ({ prompt: 'game' }));
write('train.jsonl', games(256));
write('test.jsonl', games(512));
