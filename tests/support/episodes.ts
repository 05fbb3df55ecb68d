import fc from 'fast-check';
import { type Episode, EpisodeRecorder, type Outcome } from '../../src/episode/episode.ts';
import { FAILURE_CLASSES } from '../../src/episode/failure.ts';

/** Arbitrary valid episodes for property tests: chains and trees of any interleaving of the three sources. */

export const VOCABULARY = 50;

const plain = { noNullPrototype: true };
const token = fc.integer({ min: 0, max: VOCABULARY - 1 });
const number = fc.double({ noNaN: true, noDefaultInfinity: true });
const metrics = fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), number, { ...plain, maxKeys: 3 });
const image = fc.record(
  { mediaType: fc.constantFrom('image/png', 'image/jpeg'), data: fc.uint8Array({ maxLength: 6 }) },
  plain,
);
/** Log-probs as float32: from a sure token to one that is all but impossible. */
const logprob = fc.oneof(
  fc.float({ max: 0, min: Math.fround(-1e6), noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0, -0),
);

interface Node {
  /** Chooses the parent among the segments so far. */
  readonly parent: number;
  readonly source: 'prompt' | 'policy' | 'environment';
  readonly tokens: readonly (readonly [number, number, number])[];
  readonly images: readonly { mediaType: string; data: Uint8Array }[] | undefined;
  readonly step: Omit<Parameters<EpisodeRecorder['step']>[0], 'segment'> | undefined;
  /** Chooses the rewards of the step's tokens; none when not given. */
  readonly tokenReward: number | undefined;
}

const step = fc.record(
  {
    reward: number,
    finishReason: fc.constantFrom('stop' as const, 'length' as const, 'abort' as const),
    stateKey: fc.string(),
    metrics,
  },
  { ...plain, requiredKeys: ['reward', 'finishReason'] },
);

const node: fc.Arbitrary<Node> = fc.record({
  parent: fc.nat(),
  source: fc.constantFrom('prompt' as const, 'policy' as const, 'environment' as const),
  tokens: fc.array(fc.tuple(token, logprob, fc.nat({ max: 9 })), { maxLength: 5 }),
  images: fc.option(fc.array(image, { minLength: 1, maxLength: 2 }), { nil: undefined, freq: 5 }),
  step: fc.option(step, { nil: undefined, freq: 4 }),
  tokenReward: fc.option(number, { nil: undefined, freq: 2 }),
});

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constant({ kind: 'done' as const }),
  fc.record(
    {
      kind: fc.constant('truncated' as const),
      reason: fc.constantFrom('turns' as const, 'tokens' as const, 'length' as const),
    },
    plain,
  ),
  fc.record(
    {
      kind: fc.constant('failed' as const),
      failure: fc.constantFrom(...FAILURE_CLASSES),
      message: fc.string({ minLength: 1 }),
      step: fc.constant(0),
    },
    plain,
  ),
);

const task = fc.record(
  {
    id: fc.string({ minLength: 1 }),
    prompt: fc.oneof(
      fc.string(),
      fc.array(fc.record({ role: fc.string(), content: fc.string({ unit: 'binary' }) }, plain)),
    ),
    label: fc.string(),
    metadata: fc.dictionary(
      fc.string().filter(key => key !== '__proto__'),
      fc.jsonValue().map(value => JSON.parse(JSON.stringify(value)) as unknown),
      { ...plain, maxKeys: 3 },
    ),
    images: fc.array(image, { maxLength: 2 }),
    source: fc.string(),
  },
  { ...plain, requiredKeys: ['id', 'prompt', 'label', 'metadata'] },
);

export interface Recorded {
  readonly episode: Episode;
  /** For each segment what the policy had seen when the segment ended, tracked apart from the recorder. */
  readonly seen: readonly (readonly number[])[];
}

/** `chain`: every segment continues the one before it; otherwise any earlier one, or none. */
export function recorded(options: { readonly chain?: boolean } = {}): fc.Arbitrary<Recorded> {
  return fc
    .tuple(
      task,
      fc.array(token, { minLength: 1, maxLength: 4 }),
      fc.array(node, { maxLength: 9 }),
      outcome,
      fc.option(number, { nil: undefined }),
      metrics,
    )
    .map(([task, root, nodes, outcome, score, metrics]) => {
      const recorder = new EpisodeRecorder({ id: 'e', task, group: 'g', sample: 0 });
      recorder.feed(-1, 'prompt', Int32Array.from(root));
      const seen: number[][] = [[...root]];
      for (const { parent: choice, source, tokens, images, step, tokenReward } of nodes) {
        // A sampled or environment segment continues something; a prompt may also open a new root.
        const roots = !options.chain && source === 'prompt' ? 1 : 0;
        const parent = options.chain ? seen.length - 1 : (choice % (seen.length + roots)) - roots;
        const ids = tokens.map(([id]) => id);
        if (parent < 0 && ids.length === 0) ids.push(0);
        seen.push([...(seen[parent] ?? []), ...ids]);
        if (source !== 'policy') {
          recorder.feed(parent, source, Int32Array.from(ids), images);
          continue;
        }
        const logprobs = Float32Array.from(tokens, ([, logprob]) => logprob);
        const versions = Int32Array.from(tokens, ([, , version]) => version);
        const segment = recorder.sampled(parent, { tokens: Int32Array.from(ids), logprobs, versions });
        if (step === undefined) continue;
        const tokenRewards = tokenReward === undefined ? undefined : ids.map(id => (id % 2 === 0 ? tokenReward : -0));
        recorder.step({ segment, ...step, ...(tokenRewards && { tokenRewards }) });
      }
      const finite = Number.isFinite(score ?? recorder.steps.reduce((sum, { reward }) => sum + reward, 0));
      return { episode: recorder.finish(outcome, { score: finite ? score : 0, metrics }), seen };
    });
}
