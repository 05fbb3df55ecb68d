import { basename } from 'node:path';
import { type RewardFunction, type RewardOutput, type Scored, totalled } from './contracts.ts';

export interface MixturePart {
  readonly reward: RewardFunction;
  /** Finite; negative for a penalty. */
  readonly weight: number;
}

/**
 * Weighted sum of several rewards, by the names under which they appear in metrics: `reward_<name>` is what a part gave,
 * unweighted, and its own metrics follow as `<name>_<metric>`. The score is the same sum over the parts' scores, and so
 * are process rewards over the parts that give them. A part that fails fails the answer.
 */
export function mixedReward(
  parts: Readonly<Record<string, MixturePart>>,
): RewardFunction & { readonly close: () => Promise<void> } {
  const entries = Object.entries(parts);
  if (entries.length === 0) throw new Error('a mixture of rewards needs at least one part');
  for (const [name, { weight }] of entries) {
    if (!Number.isFinite(weight)) throw new Error(`the weight of reward ${name} must be a number, got ${weight}`);
  }
  const reward: RewardFunction = async batch => {
    const scored = await Promise.all(
      entries.map(async ([name, part]) => {
        const outputs = await part.reward(batch);
        if (outputs.length !== batch.length) {
          throw new Error(
            `reward ${name}: expected ${batch.length} scores, one for each answer, got ${outputs.length}`,
          );
        }
        return { name, weight: part.weight, outputs: outputs.map(output => checked(name, output)) };
      }),
    );
    return batch.map((_, i) => {
      const given = scored.map(({ name, weight, outputs }) => ({ name, weight, ...outputs[i]! }));
      const [tokens, steps] = [weighted('tokens', given), weighted('steps', given)];
      return {
        ...(tokens && { tokens }),
        ...(steps && { steps }),
        reward: given.reduce((sum, { weight, reward: value }) => sum + weight * value, 0),
        score: given.reduce((sum, { weight, reward: value, score = value }) => sum + weight * score, 0),
        metrics: Object.fromEntries(
          given.flatMap(({ name, reward: value, metrics = {} }) => [
            [`reward_${name}`, value],
            ...Object.entries(metrics).map(([metric, number]) => [`${name}_${metric}`, number]),
          ]),
        ),
      };
    });
  };
  const close = async () => {
    await Promise.all(entries.map(([, part]) => part.reward.close?.()));
  };
  return Object.assign(reward, { close });
}

/** Sum of the process rewards of one kind, each by its part's weight; undefined where no part gives any. */
function weighted(
  kind: 'tokens' | 'steps',
  given: readonly (RewardOutput & { readonly name: string; readonly weight: number })[],
): number[] | undefined {
  const [first, ...others] = given.filter(part => part[kind] !== undefined);
  if (first === undefined) return undefined;
  const sum = first[kind]!.map(value => first.weight * value);
  for (const { name, weight, [kind]: values = [] } of others) {
    if (values.length !== sum.length) {
      throw new Error(
        `reward ${name}: ${values.length} rewards of ${kind}, where reward ${first.name} gives ${sum.length}`,
      );
    }
    for (const [k, value] of values.entries()) sum[k]! += weight * value;
  }
  return sum;
}

function checked(name: string, output: number | RewardOutput): Scored {
  const { tokens, steps, ...rest }: RewardOutput = typeof output === 'number' ? { reward: output } : { ...output };
  const lists = Object.entries({ tokens, steps }).filter(([, values]) => values !== undefined);
  if (lists.every(([, values]) => Array.isArray(values)) && (lists.length > 0 || rest.reward !== undefined)) {
    const value = totalled({ ...rest, ...Object.fromEntries(lists) });
    if (Number.isFinite(value.reward)) return value;
  }
  throw new Error(`reward ${name}: expected a finite number or an object {reward, score?, metrics?} for each answer`);
}

/** What a part is called in metrics: a name as it is, a file without its ending, servers by their first host. */
export function partName(source: string): string {
  const [first = source] = source.split(',');
  const name =
    /^https?:/i.test(first) && URL.canParse(first) ? new URL(first).host : basename(first).replace(/\.\w+$/, '');
  return name.replace(/\W+/g, '_');
}
