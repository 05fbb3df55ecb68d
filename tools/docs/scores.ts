import { readFileSync, writeFileSync } from 'node:fs';
import type { Player } from '../../src/envs/index.ts';
import { listEnvironments, type OpenedEnvironment, openEnvironment } from '../../src/envs/index.ts';
import { playerScores } from '../../src/testing/index.ts';

/** Writes the scores of the scripted players into docs/environments.md: `npm run docs`. */

const page = new URL('../../docs/environments.md', import.meta.url);
const TABLE = /(<!-- scores -->\n)[\s\S]*(<!-- end of scores -->)/;

async function columns(environment: OpenedEnvironment, player: Player | undefined): Promise<string> {
  if (player === undefined) return '| |';
  const scores = await playerScores(environment, player);
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  // The parts of a full score are added up in floating point.
  const full = scores.filter(score => score > 1 - 1e-9).length / scores.length;
  return ` ${mean.toFixed(3)} | ${Math.round(100 * full)}% |`;
}

const rows = ['| environment | random: score | full | oracle: score | full |', '|---|---|---|---|---|'];
for (const { name } of listEnvironments()) {
  const environment = openEnvironment(name);
  const { random, oracle } = environment.players ?? {};
  rows.push(`| \`${name}\` |${await columns(environment, random)}${await columns(environment, oracle)}`);
}
const text = readFileSync(page, 'utf8');
if (!TABLE.test(text)) throw new Error('docs/environments.md has no table between its marks for scores');
writeFileSync(
  page,
  text.replace(TABLE, (_, begin, end) => `${begin}${rows.join('\n')}\n${end}`),
);
