import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { GAMES } from './index.ts';
import { PythonRandom } from './python-random.ts';
import { startGame, takeTurn } from './text-game.ts';

/** Of `tools/golden/games.py`, where the format is told. */
type Transcript = [
  level: string,
  seed: number,
  first: string,
  moves: string[],
  rewards: number[],
  flags: string,
  last: string,
  digest: string,
];

function transcripts(name: string): Transcript[] {
  const file = new URL(`../../../../tests/goldens/games/${name}.jsonl.gz`, import.meta.url);
  const lines = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n');
  return lines.map(line => JSON.parse(line) as Transcript);
}

describe.each(GAMES)('$name', family => {
  it('goes as the game of the Python package does, move by move', () => {
    const all = transcripts(family.name);
    expect(all.length).toBeGreaterThanOrEqual(1000);
    for (const [level, seed, first, moves, rewards, flags, last, digest] of all) {
      const game = startGame(family, level, {}, new PythonRandom(seed));
      const states = [game.state()];
      const turns = moves.map((move, i) => {
        const turn = takeTurn(game, move, i + 1);
        states.push(game.state());
        return turn;
      });
      const played = {
        level,
        seed,
        first: states[0],
        rewards: turns.map(({ reward }) => reward),
        flags: turns.map(({ terminated, truncated }) => (truncated ? 'B' : terminated ? 'T' : '-')).join(''),
        last: states.at(-1),
        digest: createHash('md5').update(states.join('\n')).digest('hex'),
      };
      // Rewards too are equal to the last bit.
      expect(played).toEqual({ level, seed, first, rewards, flags, last, digest });
    }
  });
});
