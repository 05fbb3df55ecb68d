import { type Attempt, attemptsOf } from '../attempts.ts';
import { type AdvantageInput, type AdvantageOutput, checkedCredit, type Estimator } from './contract.ts';
import { groupMetrics, groupsOf } from './group.ts';
import { type WhitenedOptions, whiten } from './whiten.ts';

export interface GaeOptions extends WhitenedOptions {
  /** λ in [0, 1]; 1 when not given. */
  readonly lambda?: number | undefined;
}

/**
 * Generalised advantage estimation with a critic, over policy tokens only:
 *
 *   δ_t = r_t + γ_t·V_{t+1} − V_t      A_t = δ_t + γ_t·λ_t·A_{t+1}      return_t = A_t + V_t
 *
 * V_{t+1} of a turn's last token is the value at the next turn's first token, however long the environment's answer
 * between them was. With time in turns γ_t and λ_t are γ and λ at the last token of a turn and 1 elsewhere. Advantages
 * are whitened over the batch, returns are not.
 * Source: Schulman et al., High-Dimensional Continuous Control, eq. 16, https://arxiv.org/abs/1506.02438
 */
export function gae(options: GaeOptions = {}): Estimator {
  const { gamma, time, leaves } = checkedCredit(options);
  const { lambda = 1, whitening = { mean: true, std: true } } = options;
  if (!(lambda >= 0 && lambda <= 1)) throw new Error(`lambda must be in [0, 1], got ${lambda}`);
  // Discounts inside a turn; at its last token they are γ and γ·λ whatever time counts.
  const [gammaInside, lambdaInside] = time === 'turn' ? [1, 1] : [gamma, lambda];

  /** Fills advantages and returns, [length] each. */
  const recursion = (
    attempt: Attempt,
    { advantages, returns }: { readonly advantages: Float64Array; readonly returns: Float64Array },
    values: Float64Array,
    penalties?: Float64Array,
  ): void => {
    let nextValue = 0;
    let nextAdvantage = 0;
    // Reward of turns without tokens, which stands on the token before them.
    let pending = 0;
    for (let k = attempt.turns.length - 1; k >= 0; k--) {
      const { start, end, reward, rewards } = attempt.turns[k]!;
      if (rewards === undefined) pending += reward;
      for (let t = end - 1; t >= start; t--) {
        const last = t === end - 1;
        if (rewards !== undefined) pending += rewards[t - start]!;
        const discount = last ? gamma : gammaInside;
        const penalty = penalties === undefined ? 0 : penalties[t]!;
        const delta = pending - penalty + discount * nextValue - values[t]!;
        nextAdvantage = delta + discount * (last ? lambda : lambdaInside) * nextAdvantage;
        nextValue = values[t]!;
        advantages[t] = nextAdvantage;
        returns[t] = nextAdvantage + nextValue;
        pending = 0;
      }
    }
  };

  return {
    name: 'gae',
    needsCritic: true,
    needsGreedy: false,
    leaves,
    minimumGroup: 1,
    estimate(input: AdvantageInput): AdvantageOutput {
      if (input.values === undefined) throw new Error('gae needs the values of a critic');
      const view = attemptsOf(input.trajectories, leaves);
      const values = view.gather('values', input.values);
      const penalties = input.penalties && view.gather('penalties', input.penalties);
      const streams = view.zeros();
      const targets = view.zeros();
      for (const [i, attempt] of view.attempts.entries()) {
        recursion(attempt, { advantages: streams[i]!, returns: targets[i]! }, values[i]!, penalties?.[i]);
      }
      const returns = view.scatter(targets);
      whiten(view, streams, whitening, input.keep);
      return {
        advantages: view.scatter(streams),
        returns,
        metrics: groupMetrics(view, groupsOf(view.attempts), penalties),
      };
    },
  };
}
