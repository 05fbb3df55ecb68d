import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { NO_SANDBOX } from '../../tests/support/sandbox.ts';
import { declareChecks } from '../testing/check.ts';
import { environmentSuite } from '../testing/environment-suite.ts';
import { listEnvironments, openEnvironment } from './registry.ts';

/** Mean scores of the random player and of the oracle, by environment, as docs/environments.md states them. */
const page = readFileSync(new URL('../../docs/environments.md', import.meta.url), 'utf8');
const stated = new Map(
  [...page.matchAll(/^\| `([^`]+)` \| (-?\d\.\d+) \| \d+% \| (-?\d\.\d+) \| \d+% \|$/gm)].map(
    ([, name, random, oracle]) => [name!, { random: Number(random), oracle: Number(oracle) }] as const,
  ),
);
const names = listEnvironments().map(({ name }) => name);

it('docs/environments.md states the scores of every environment (npm run docs writes them)', () => {
  expect([...stated.keys()]).toEqual(names);
});

/** Where programs cannot be isolated, the reason for skipping them has been printed. */
const played = names.filter(name => name !== 'code' || NO_SANDBOX === undefined);

describe.each(played)('%s', name => {
  const { make, tasks, maxTurns, players } = openEnvironment(name);
  const { random, oracle } = players ?? {};
  if (random === undefined || oracle === undefined) throw new Error(`${name} has no scripted players`);
  const answer = random({ task: tasks[0]!, seed: 5 });
  const answers = Array.from({ length: 12 }, (_, turn) => answer('', turn)) as string[];
  const scores = stated.get(name);
  const checks = environmentSuite({
    make,
    tasks,
    maxTurns,
    answers,
    random: { player: random, score: scores?.random ?? Number.NaN },
    oracle: { player: oracle, score: scores?.oracle },
  });
  declareChecks(checks, it);
});
