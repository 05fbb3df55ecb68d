import { z } from 'zod';
import { options, type Values } from '../options/option.ts';
import { type Curation, FILTER_EFFECTS } from './curation.ts';
import {
  anyTurn,
  type EpisodeFilter,
  type GroupFilter,
  isTruncated,
  meanScoreWithin,
  repeatsText,
  scoreStdAbove,
  turnsAtLeast,
} from './filters.ts';
import { overlongPenalty, REWARD_SPLITS, splitReward, stopProperly } from './penalties.ts';

const effect = z.enum(['keep', ...FILTER_EFFECTS]).default('keep');
const EFFECTS =
  'keep: train on them; mask: leave them out of the loss but not out of the baseline; remove: out of both';

/** What happens to episodes and groups before rewards are compared. */
export const curationOptions = options({
  'reward.overlong_buffer_len': {
    schema: z.int().min(1).optional(),
    help: 'Tokens before the longest answer in which the penalty for length grows from 0; without it there is none (DAPO)',
    unit: 'tokens',
    aliases: ['overlong_buffer_len'],
  },
  'reward.overlong_penalty_factor': {
    schema: z.number().min(0).optional(),
    help: 'The penalty for length at the longest answer; without it 1',
    aliases: ['overlong_penalty_factor'],
  },
  'reward.overlong_max_len': {
    schema: z.int().min(1).optional(),
    help: 'Tokens that the policy may sample in an episode before the penalty for length is full; without it rollout.max_new_tokens, where episodes have one answer',
    unit: 'tokens',
  },
  'reward.stop_properly_penalty_coef': {
    schema: z.number().max(1).optional(),
    help: 'For episodes cut off by a length limit in whatever turn: 0 to 1 scales their rewards, a negative number is their return (ProRL)',
    aliases: ['stop_properly_penalty_coef'],
  },
  'reward.split': {
    schema: z.enum(REWARD_SPLITS).optional(),
    help: 'Give the return of an episode to its turns anew: to the last one, all of it to each (broadcast), in equal parts, or more to later ones (geometric); without it rewards stay at the turn that earned them',
  },
  'reward.split_factor': {
    schema: z.number().gt(0).lt(1).optional(),
    help: 'Geometric split: what a turn gets, as a share of what the next one gets; without it 0.9',
  },
  'algo.filter.truncated': {
    schema: effect,
    help: `Episodes cut off by a length limit (overlong filtering). ${EFFECTS}`,
  },
  'algo.filter.void_turns': {
    schema: effect,
    help: 'Episodes with a turn that neither calls a tool nor answers, as the environment says (SimpleTIR). As above',
  },
  'algo.filter.failed_tools': {
    schema: effect,
    help: 'Episodes in which many tool calls failed, as the environment says. As above',
  },
  'algo.filter.failed_tools_share': {
    schema: z.number().gt(0).max(1).optional(),
    help: 'Share of the turns whose tool call failed from which on that is many; without it 0.5',
  },
  'algo.filter.repeated_text': {
    schema: effect,
    help: 'Episodes with an answer that repeats itself. As above',
  },
  'algo.filter.repeated_text_share': {
    schema: z.number().min(0).lt(1).optional(),
    help: 'Share of repeated n-grams of an answer above which it repeats itself; without it 0.5',
  },
  'algo.filter.repeated_text_ngram': {
    schema: z.int().min(1).optional(),
    help: 'n of these n-grams; without it 8',
    unit: 'tokens',
  },
  'algo.dynamic_filtering_enable': {
    schema: z.boolean().default(false),
    help: 'Train only on groups that teach something and sample other tasks in place of the rest',
    aliases: ['dynamic_filtering'],
  },
  'algo.dynamic_filtering_range': {
    schema: z.tuple([z.number(), z.number()]).optional(),
    help: 'A group teaches something when its mean score lies strictly between these; without it 0 and 1',
    aliases: ['dynamic_filtering_reward_range'],
  },
  'algo.dynamic_filtering_min_std': {
    schema: z.number().min(0).optional(),
    help: 'Instead of the range: a group teaches something when the standard deviation of its scores is above this',
  },
});

export type CurationValues = Values<typeof curationOptions>;

/**
 * What the flags say about episodes.
 * @param context.answerLength longest episode in tokens of the policy, where the options determine it
 * @throws Error for a combination that makes no sense, with the reason
 */
export function curationFromOptions(
  values: CurationValues,
  context: { readonly answerLength?: number | undefined } = {},
): Curation {
  return { penalties: penalties(values, context.answerLength), filters: filters(values) };
}

function penalties(values: CurationValues, answerLength: number | undefined): NonNullable<Curation['penalties']> {
  const buffer = values['reward.overlong_buffer_len'];
  const factor = values['reward.overlong_penalty_factor'];
  const given = values['reward.overlong_max_len'];
  const stop = values['reward.stop_properly_penalty_coef'];
  const split = values['reward.split'];
  const splitFactor = values['reward.split_factor'];
  const list: { name: string; apply: ReturnType<typeof stopProperly> }[] = [];
  if (buffer !== undefined) {
    const maxTokens = given ?? answerLength;
    if (maxTokens === undefined) {
      throw new Error(
        'reward.overlong_buffer_len needs to know the longest episode: set reward.overlong_max_len, or rollout.max_new_tokens where episodes have one answer',
      );
    }
    list.push({ name: 'overlong', apply: overlongPenalty({ maxTokens, buffer, factor }) });
  } else
    needs('reward.overlong_buffer_len', { 'reward.overlong_penalty_factor': factor, 'reward.overlong_max_len': given });
  if (stop !== undefined) list.push({ name: 'stop_properly', apply: stopProperly(stop) });
  if (split !== undefined) list.push({ name: 'split', apply: splitReward(split, splitFactor) });
  if (split !== 'geometric') needs('reward.split geometric', { 'reward.split_factor': splitFactor });
  return list;
}

function filters(values: CurationValues): NonNullable<Curation['filters']> {
  const failedShare = values['algo.filter.failed_tools_share'];
  const share = values['algo.filter.repeated_text_share'];
  const n = values['algo.filter.repeated_text_ngram'];
  const found: [name: string, effect: CurationValues['algo.filter.truncated'], finds: EpisodeFilter][] = [
    ['truncated', values['algo.filter.truncated'], isTruncated],
    ['void_turns', values['algo.filter.void_turns'], anyTurn(step => step.isVoid === true)],
    [
      'failed_tools',
      values['algo.filter.failed_tools'],
      turnsAtLeast(failedShare ?? 0.5, step => step.toolFailed === true),
    ],
    ['repeated_text', values['algo.filter.repeated_text'], repeatsText({ n: n ?? 8, share: share ?? 0.5 })],
  ];
  if (values['algo.filter.failed_tools'] === 'keep') {
    needs('algo.filter.failed_tools mask or remove', { 'algo.filter.failed_tools_share': failedShare });
  }
  if (values['algo.filter.repeated_text'] === 'keep') {
    needs('algo.filter.repeated_text mask or remove', {
      'algo.filter.repeated_text_share': share,
      'algo.filter.repeated_text_ngram': n,
    });
  }
  return found.flatMap(([name, effect, finds]) => (effect === 'keep' ? [] : [{ name, effect, finds }]));
}

/**
 * Which groups are worth training on; undefined when all are.
 * @throws Error for a combination that makes no sense, with the reason
 */
export function groupFilterFromOptions(values: CurationValues, samplesPerTask: number): GroupFilter | undefined {
  const range = values['algo.dynamic_filtering_range'];
  const minimum = values['algo.dynamic_filtering_min_std'];
  if (!values['algo.dynamic_filtering_enable']) {
    needs('algo.dynamic_filtering_enable', {
      'algo.dynamic_filtering_range': range,
      'algo.dynamic_filtering_min_std': minimum,
    });
    return undefined;
  }
  if (range !== undefined && minimum !== undefined) {
    throw new Error('give algo.dynamic_filtering_range or algo.dynamic_filtering_min_std, not both');
  }
  if (samplesPerTask < 2) {
    throw new Error(
      `dynamic filtering compares the samples of a task and needs rollout.n_samples_per_prompt ≥ 2, got ${samplesPerTask}`,
    );
  }
  if (minimum !== undefined) return scoreStdAbove(minimum);
  const [low, high] = range ?? [0, 1];
  return meanScoreWithin(low, high);
}

/** @throws Error when one of the options is given although it has no effect without `what`. */
export function needs(what: string, given: Readonly<Record<string, unknown>>): void {
  const names = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (names.length > 0)
    throw new Error(`${names.join(' and ')} ${names.length > 1 ? 'have' : 'has'} no effect without ${what}`);
}
