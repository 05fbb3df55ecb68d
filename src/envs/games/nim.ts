import type { Game } from '../contracts.ts';

/**
 * Nim with one pile for two seats, `first` and `second`: take one to three in turn; who takes the last one wins 1, the
 * other gets −1. A move is a number as text; one that the rules do not allow loses. The pile is the number that the
 * task's label says, else 5 to 12 by the seed. Each seat is told the pile it finds: `7>`.
 */
export function nim(): Game {
  let pile = 0;
  const other = { first: 'second', second: 'first' } as const;
  return {
    reset({ label }, { seed }) {
      const given = Number(label);
      pile = label !== '' && Number.isInteger(given) && given > 0 ? given : 5 + (seed % 8);
      return { observations: { first: `${pile}>` }, next: 'first' };
    },
    step({ seat, actionText }) {
      const me = seat as keyof typeof other;
      const won = (winner: keyof typeof other, allowed: number) => ({
        rewards: { [winner]: 1, [other[winner]]: -1 },
        score: winner === 'first' ? 1 : 0,
        metrics: { allowed },
        done: true,
      });
      const taken = /^[123]$/.test(actionText.trim()) ? Number(actionText) : Number.NaN;
      if (!(taken <= pile)) return won(other[me], 0);
      pile -= taken;
      if (pile === 0) return won(me, 1);
      return { feedback: { [other[me]]: `${pile}>` }, next: other[me], done: false };
    },
  };
}

/** Plays nim as well as it can be played: leaves a multiple of four, and takes one where there is no such move. */
export function nimPlayer(told: string | readonly { readonly content: string }[]): string {
  const text = typeof told === 'string' ? told : (told.at(-1)?.content ?? '');
  const pile = Number(/(\d+)>\s*$/.exec(text)?.[1]);
  return String(pile % 4 || 1);
}
