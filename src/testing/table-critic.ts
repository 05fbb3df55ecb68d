import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { evaluate } from '../algorithms/numeric.ts';
import type { Critic, LearnerBatch } from '../engines/contracts.ts';
import { unitLengths } from './units.ts';

/**
 * The smallest critic that really learns: one value for each token that may come before the predicted one, all 0 at
 * first, with exact gradients and plain gradient descent.
 */
export function tableCritic(vocabularySize: number): Critic {
  const table = new Float64Array(vocabularySize);
  const gradient = new Float64Array(vocabularySize);
  let accumulated = false;
  let version = 0;
  const forget = () => {
    gradient.fill(0);
    accumulated = false;
  };
  const write = async (directory: string) => {
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'critic.json'), JSON.stringify({ version, table: [...table] }));
  };
  return {
    contextLength: 4096,
    get version() {
      return version;
    },
    async values(batch) {
      return statesOf(batch).map(states => Float32Array.from(states, state => table[state]!));
    },
    async forwardBackward(batch, loss) {
      const states = statesOf(batch);
      const flat = states.flat();
      const result = evaluate(loss, {
        sequences: unitLengths(states, batch.together),
        logprobs: new Float64Array(flat.length),
        values: flat.map(state => table[state]!),
        inputs: Object.fromEntries(
          Object.entries(batch.inputs).map(([name, arrays]) => [name, arrays.flatMap(array => [...array])]),
        ),
      });
      for (const [i, state] of flat.entries()) gradient[state]! += result.gradient.values?.[i] ?? 0;
      accumulated = true;
      return { loss: result.loss, ...result.metrics };
    },
    async optimizerStep({ lr }) {
      if (!accumulated) throw new Error('an optimizer step needs a gradient: call forwardBackward first');
      const gradNorm = Math.sqrt(gradient.reduce((sum, d) => sum + d * d, 0));
      for (const [state, d] of gradient.entries()) table[state]! -= lr * d;
      forget();
      version += 1;
      return { gradNorm, lr };
    },
    async zeroGrad() {
      forget();
    },
    save: write,
    async load(directory) {
      const state = JSON.parse(await readFile(join(directory, 'critic.json'), 'utf8'));
      table.set(state.table);
      version = state.version;
      forget();
    },
    export: write,
    async close() {
      forget();
    },
  };
}

/** The token before each predicted one. */
function statesOf(batch: LearnerBatch): number[][] {
  return batch.sequences.map(({ tokens, predict }) =>
    [...predict].flatMap((mark, t) => (mark === 1 ? [tokens[t - 1]!] : [])),
  );
}
