import { z } from 'zod';
import type { Item } from '../../envs/clients/nemo-gym/contracts.ts';
import { path, type Segment } from '../../episode/episode.ts';
import { explain } from '../../episode/explain.ts';

/**
 * Token ids and log-probs on the items of a response, which NeMo Gym's trainers learn from: on the last item of each
 * answer, all three or none.
 */
const bundle = z.object({
  prompt_token_ids: z.array(z.int()),
  generation_token_ids: z.array(z.int()).min(1),
  generation_log_probs: z.array(z.number()),
});
const FIELDS = Object.keys(bundle.shape);

/** Log-probs are float32 here and JSON on the way; this is many roundings of one. */
const TOLERANCE = 1e-5;

/**
 * How many answers came back with their tokens.
 * @throws Error where they are others than those that were sampled
 */
export function checkBundles(output: readonly Item[], segments: readonly Segment[]): number {
  const answers = segments.flatMap(segment => (segment.source === 'policy' ? [segment] : []));
  let bundles = 0;
  for (const [index, item] of output.entries()) {
    if (!FIELDS.some(field => item[field] !== undefined && item[field] !== null)) continue;
    const parsed = bundle.safeParse(item);
    if (!parsed.success) throw new Error(`output[${index}]: ${explain(parsed.error, item)}`);
    const { prompt_token_ids: prompt, generation_token_ids: ids, generation_log_probs: logprobs } = parsed.data;
    const same = answers.filter(({ tokens }) => tokens.length === ids.length && tokens.every((id, t) => id === ids[t]));
    const below = same.filter(({ parent }) => contextOf(segments, parent) === prompt.join());
    const found = below.some(answer => isNear(answer.logprobs, logprobs));
    if (!found) {
      const what =
        same.length === 0
          ? 'tokens are not those'
          : below.length === 0
            ? 'prompt is not that'
            : 'log-probs are not those';
      throw new Error(`output[${index}]: its ${what} of an answer that was sampled in this episode`);
    }
    bundles += 1;
  }
  return bundles;
}

function contextOf(segments: readonly Segment[], leaf: number): string {
  return path(segments, leaf)
    .map(id => segments[id]!.tokens.join())
    .join();
}

function isNear(own: Float32Array, given: readonly number[]): boolean {
  return own.length === given.length && given.every((value, i) => Math.abs(value - own[i]!) <= TOLERANCE);
}
