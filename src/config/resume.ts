/**
 * Which options a run may be continued with. A checkpoint keeps the options it was made with: what its state would not
 * fit must be the same, what does not touch the result is free, and everything else may change and is told.
 */

/** The state of a checkpoint means nothing with another of these. */
const FIXED: readonly (readonly [RegExp, string])[] = [
  [/^(actor|model|critic)\.model_(name_or_path|revision)$/, 'the weights are those of that model'],
  [/^ds\.lora\.(rank|alpha|target_modules|adapter)$/, 'the weights are those of that adapter'],
  [/^ds\.load_in_/, 'the adapter was trained on a base of those bits'],
  [/^train\.enable_ema$/, 'the average is either in it from the beginning or not at all'],
  [/^train\.seed$/, 'the order of the data and every random stream derive from it'],
];

/** Places, logging, and what decides when something is done and not what. */
const FREE = /^(run|ckpt|logger|engine|use_|wandb|quiet|json)\b|^eval\.(steps|report)$|^train\.max_tokens_per_gpu$/;

type Options = Readonly<Record<string, unknown>>;

/** What a checkpoint keeps of the options of its run. */
export function lastingOptions(values: Options): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => !FREE.test(name) && value !== undefined));
}

/** One line for each option that differs: `refused` ones, with the reason, and `changed` ones. */
export function compareOptions(
  checkpoint: Options,
  now: Options,
): { readonly refused: readonly string[]; readonly changed: readonly string[] } {
  const refused: string[] = [];
  const changed: string[] = [];
  const before = lastingOptions(checkpoint);
  const after = lastingOptions(now);
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[name], after[name]].map(show);
    if (was === is) continue;
    const reason = FIXED.find(([pattern]) => pattern.test(name))?.[1];
    if (reason !== undefined) {
      refused.push(`${name} is ${is}, and the checkpoint was made with ${was}: ${reason}; set it back`);
    } else {
      changed.push(`${name} was ${was} when the checkpoint was written and is ${is} from here on`);
    }
  }
  return { refused, changed };
}

function show(value: unknown): string {
  return value === undefined ? 'not set' : JSON.stringify(value);
}
