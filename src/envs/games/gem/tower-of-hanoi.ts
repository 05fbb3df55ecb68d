import { z } from 'zod';
import { boxed, SPACE } from './boxed.ts';
import type { PythonRandom } from './python-random.ts';
import { defineGame, invalid, type Outcome, type TextGame, unreadable, valid, won } from './text-game.ts';

const NAMES = 'ABC';
// The comma and the spaces in two branches: optional between two runs of spaces it would take quadratic time.
const read = boxed(`([A-Ca-c])(?:${SPACE}*,${SPACE}*|${SPACE}*)([A-Ca-c])`);

interface Parameters {
  disks: number;
  turns: number;
}

class TowerOfHanoi implements TextGame {
  readonly instructions: string;
  readonly turns: number;
  readonly #disks: number;
  /** Bottom first; disk 1 is the smallest. */
  readonly #towers: readonly [number[], number[], number[]];

  constructor({ disks, turns }: Parameters) {
    this.turns = turns;
    this.#disks = disks;
    this.#towers = [Array.from({ length: disks }, (_, i) => disks - i), [], []];
    this.instructions = [
      `Tower of Hanoi. Bring all ${disks} disks from tower A to tower C in at most ${turns} turns.`,
      'Take the top disk of a tower and put it on another one, never on a smaller disk. Disk 1 is the smallest.',
      'Write from where to where in \\boxed{}, for example \\boxed{A C}.',
    ].join('\n');
  }

  view(): string {
    return this.#towers.map((tower, i) => `${NAMES[i]}: ${tower.join(' ') || '-'}`).join('\n');
  }

  state(): string {
    return this.#towers.map(tower => tower.join(' ')).join('/');
  }

  move(answer: string): Outcome {
    const names = read(answer)?.map(name => name.toUpperCase());
    if (names === undefined) return unreadable('two towers such as \\boxed{A C}');
    const [from, to] = names.map(name => this.#towers[NAMES.indexOf(name)]!) as [number[], number[]];
    const disk = from.at(-1);
    if (disk === undefined) return invalid(`Tower ${names[0]} is empty.`);
    const onto = to.at(-1);
    if (onto !== undefined && onto < disk) return invalid(`Disk ${disk} cannot lie on the smaller disk ${onto}.`);
    from.pop();
    to.push(disk);
    if (this.#towers[2].length === this.#disks) return won('All disks are on tower C.');
    return valid(`Disk ${disk} went from ${names[0]} to ${names[1]}.`);
  }

  /** The share of the disks that are on C, whatever the last move was. */
  lastReward(): number {
    return this.#towers[2].length / this.#disks;
  }

  /** The next move of a shortest solution: the largest disk that is not where it belongs, once nothing is in its way. */
  next(): readonly [from: string, to: string] {
    let target = 2;
    let move: readonly [string, string] = ['A', 'A'];
    for (let disk = this.#disks; disk >= 1; disk--) {
      const at = this.#towers.findIndex(tower => tower.includes(disk));
      if (at === target) continue;
      move = [NAMES[at]!, NAMES[target]!];
      target = 3 - at - target;
    }
    return move;
  }
}

export const towerOfHanoi = defineGame<Parameters, TowerOfHanoi>({
  name: 'TowerofHanoi',
  help: 'Bring a tower of disks from A to C, never a larger disk on a smaller one.',
  parameters: z.strictObject({ disks: z.int().min(1).max(30), turns: z.int().min(1) }),
  levels: { easy: { disks: 3, turns: 10 }, hard: { disks: 5, turns: 35 } },
  randomParameters: z.strictObject({}),
  draw: random =>
    random.choice([
      { disks: 3, turns: 10 },
      { disks: 4, turns: 20 },
      { disks: 5, turns: 35 },
    ]),
  start: parameters => new TowerOfHanoi(parameters),
  oracle: game => `\\boxed{${game.next().join(' ')}}`,
  randomMove: (_game, random: PythonRandom) => `\\boxed{${random.choice(NAMES)} ${random.choice(NAMES)}}`,
});
