import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { evaluate } from '../algorithms/numeric.ts';
import type { GenerateRequest, Learner, LearnerBatch } from '../engines/contracts.ts';
import { BigramTable, entropy } from './bigram-table.ts';
import { type ScriptedSampler, type ScriptedToken, scriptedSampler } from './scripted-sampler.ts';
import { unitLengths } from './units.ts';

export interface BigramPolicyOptions {
  readonly vocabularySize: number;
  /** Tokens; 4096 by default. */
  readonly contextLength?: number;
  /** [V × V] initial logits, row = the token before; all 0 (uniform) by default. */
  readonly logits?: Float64Array;
  /** Text of tokens, for requests with stop strings. */
  readonly decode?: (tokens: ArrayLike<number>) => string;
  /** As for `scriptedSampler`: the test decides when tokens are sampled. */
  readonly gated?: boolean;
}

export interface BigramPolicy {
  readonly sampler: ScriptedSampler;
  readonly learner: Learner;
  /** [V] probabilities of the token after `previous` under the learner's present weights. */
  probabilities(previous: number): Float64Array;
}

/**
 * The smallest policy that really learns: a table of logits of the next token given the last one, with exact gradients
 * and plain gradient descent (no clipping). Sampler and learner keep their contracts, so the whole loop runs on it
 * without a model: publishing copies the table, the reference is the initial one, and equal seeds give equal tokens.
 */
export function bigramPolicy(options: BigramPolicyOptions): BigramPolicy {
  const { vocabularySize, contextLength = 4096, gated = false, decode } = options;
  const table = new BigramTable(vocabularySize, options.logits?.slice());
  let served = table.copy();
  const sampler = scriptedSampler({
    answers: request => sampled(request, () => served),
    codec: {
      vocabularySize,
      encode: text => {
        throw new Error(`the bigram policy knows no text, got ${JSON.stringify(text)}`);
      },
      ...(decode ? { decode } : {}),
    },
    contextLength,
    gated,
    onPublish: () => {
      served = table.copy();
    },
  });
  return {
    sampler,
    learner: bigramLearner(table, contextLength),
    probabilities: previous => table.logprobs(previous, 1).map(Math.exp),
  };
}

function* sampled(request: GenerateRequest, served: () => BigramTable): Generator<ScriptedToken> {
  const { temperature, topP, topK, minP } = request.params;
  if (topP !== 1 || topK !== 0 || minP !== 0) {
    throw new Error('the bigram policy samples from the whole distribution; leave topP, topK and minP off');
  }
  const random = xoroshiro128plus(request.seed);
  // The first outputs of this generator hardly differ between small seeds, which tests like to use.
  for (let i = 0; i < 16; i++) random.next();
  let last = request.tokens.at(-1)!;
  while (true) {
    if (temperature === 0) {
      const logprobs = served().logprobs(last, 1);
      last = logprobs.indexOf(Math.max(...logprobs));
      yield { token: last, logprob: 0, distribution: logprobs };
    } else {
      const logprobs = served().logprobs(last, temperature);
      let rest = uniformFloat64(random);
      const chosen = logprobs.findIndex(logprob => {
        rest -= Math.exp(logprob);
        return rest < 0;
      });
      // Rounding can leave a rest behind the last token.
      last = chosen < 0 ? logprobs.length - 1 : chosen;
      yield { token: last, logprob: logprobs[last]!, distribution: logprobs };
    }
  }
}

function bigramLearner(table: BigramTable, contextLength: number): Learner {
  const reference = table.copy();
  const average = table.copy();
  const gradient = new Float64Array(table.logits.length);
  let accumulated = false;
  let version = 0;
  const forget = () => {
    gradient.fill(0);
    accumulated = false;
  };

  const write = async (directory: string) => {
    await mkdir(directory, { recursive: true });
    const state = {
      version,
      logits: [...table.logits],
      reference: [...reference.logits],
      average: [...average.logits],
    };
    await writeFile(join(directory, 'bigram.json'), JSON.stringify(state));
  };

  return {
    contextLength,
    get version() {
      return version;
    },
    async forward(batch, { weights = 'policy' } = {}) {
      const source = weights === 'policy' ? table : reference;
      const places = placesOf(batch).map(sequence =>
        sequence.map(({ previous, token }) => {
          const logprobs = source.logprobs(previous, batch.temperature);
          return { logprob: logprobs[token]!, entropy: entropy(logprobs) };
        }),
      );
      return {
        logprobs: places.map(sequence => Float32Array.from(sequence, place => place.logprob)),
        entropy: places.map(sequence => Float32Array.from(sequence, place => place.entropy)),
      };
    },
    async forwardBackward(batch, loss) {
      const { temperature } = batch;
      const places = placesOf(batch);
      const flat = places.flat();
      const distributions = flat.map(({ previous }) => table.logprobs(previous, temperature));
      const result = evaluate(loss, {
        sequences: unitLengths(places, batch.together),
        logprobs: flat.map(({ token }, i) => distributions[i]![token]!),
        entropy: distributions.map(entropy),
        inputs: Object.fromEntries(
          Object.entries(batch.inputs).map(([name, arrays]) => [name, arrays.flatMap(array => [...array])]),
        ),
      });
      accumulated = true;
      for (const [i, place] of flat.entries()) {
        const dLogprob = result.gradient.logprobs[i]!;
        const dEntropy = result.gradient.entropy?.[i] ?? 0;
        table.backward(gradient, { ...place, temperature, dLogprob, dEntropy });
      }
      return { loss: result.loss, ...result.metrics };
    },
    async optimizerStep({ lr }) {
      if (!(lr >= 0 && Number.isFinite(lr))) throw new Error(`the learning rate is ${lr}; it must be a number ≥ 0`);
      if (!accumulated) throw new Error('an optimizer step needs a gradient: call forwardBackward first');
      let squares = 0;
      for (let i = 0; i < gradient.length; i++) squares += gradient[i]! ** 2;
      const gradNorm = Math.sqrt(squares);
      if (!Number.isFinite(gradNorm)) {
        forget();
        throw new Error(`the gradient norm is ${gradNorm}; the update was refused and the weights are as before`);
      }
      for (let i = 0; i < gradient.length; i++) table.logits[i]! -= lr * gradient[i]!;
      forget();
      version += 1;
      return { gradNorm, lr };
    },
    async zeroGrad() {
      forget();
    },
    async updateReference({ beta }) {
      if (!(beta >= 0 && beta <= 1)) throw new Error(`beta is ${beta}; it must be in [0, 1]`);
      for (const [i, logit] of table.logits.entries()) {
        reference.logits[i] = beta * reference.logits[i]! + (1 - beta) * logit;
      }
    },
    average: {
      async update({ beta }) {
        if (!(beta >= 0 && beta < 1)) throw new Error(`beta is ${beta}; it must be in [0, 1)`);
        for (const [i, logit] of table.logits.entries()) {
          average.logits[i] = beta * average.logits[i]! + (1 - beta) * logit;
        }
      },
      async swap() {
        const policy = table.logits.slice();
        table.logits.set(average.logits);
        average.logits.set(policy);
      },
    },
    save: write,
    async load(directory) {
      const state = JSON.parse(await readFile(join(directory, 'bigram.json'), 'utf8'));
      table.logits.set(state.logits);
      reference.logits.set(state.reference);
      average.logits.set(state.average);
      version = state.version;
      forget();
    },
    // There is no Hugging Face form of a bigram table; it is written in its own.
    export: write,
    async close() {
      forget();
    },
  };
}

/** The predicted tokens of each sequence with the token before each. */
function placesOf(batch: LearnerBatch): { previous: number; token: number }[][] {
  return batch.sequences.map(({ tokens, predict }) => {
    if (predict[0] === 1) throw new Error('the first token of a sequence has nothing before it to be predicted from');
    return [...tokens].flatMap((token, t) => (predict[t] === 1 ? [{ previous: tokens[t - 1]!, token }] : []));
  });
}
