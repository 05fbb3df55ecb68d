import { chartSvg, type Point } from '../../tools/plot/chart.ts';

/** What the runs came to: the share of held-out games that are won. */
export interface Results {
  /** Share of games won by the scripted players, over 1000 games. */
  readonly players: Readonly<Record<'guess' | 'puzzle', { readonly random: number; readonly oracle: number }>>;
  readonly guess: Curves;
  readonly gigpo: Curves;
  readonly grpo: Curves;
}

interface Curves {
  readonly steps: readonly number[];
  /** One list for each seed, from 1, with a value for each of the steps. */
  readonly seeds: readonly (readonly number[])[];
}

const pointsOf = ({ steps, seeds }: Curves): Point[][] =>
  seeds.map(values => values.map((y, i) => ({ x: steps[i]!, y })));

/** The charts beside the README, by file name. */
export function resultCharts({ players, guess, gigpo, grpo }: Results): Record<string, string> {
  const references = ({ random, oracle }: Results['players']['guess']) => [
    { label: `optimal player ${oracle}`, y: oracle },
    { label: `random player ${random}`, y: random },
  ];
  return {
    'guess.svg': chartSvg({
      title: `GuessTheNumber-v0-easy: ${guess.seeds.length} seeds and their mean`,
      xLabel: 'steps',
      yLabel: 'held-out games won',
      runs: pointsOf(guess),
      references: references(players.guess),
    }),
    'puzzle.svg': chartSvg({
      title: `FifteenPuzzle-v0-easy: ${gigpo.seeds.length} seeds each, and their means`,
      xLabel: 'steps',
      yLabel: 'held-out games won',
      runs: pointsOf(gigpo),
      label: 'GiGPO',
      others: [{ label: 'GRPO', runs: pointsOf(grpo) }],
      references: references(players.puzzle),
    }),
  };
}
