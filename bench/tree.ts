import type { LearnerSequence, LossBatch } from '../src/engines/contracts.ts';
import { inputTokens, packBatch } from '../src/engines/onnx/batch.ts';
import { OnnxLearnerCore } from '../src/engines/onnx/learner.ts';
import { record } from '../src/engines/onnx/loss-program.ts';
import { Model } from '../src/engines/onnx/model.ts';
import { interleave, Report, type Table, THREADS } from './harness.ts';
import { MODELS, withConfig } from './models.ts';
import { POLICY_GRADIENT } from './workload.ts';

/** Sequences of one batch: groups whose members share a prompt and go on for themselves. */
interface Shape {
  readonly groups: number;
  readonly samples: number;
  readonly prompt: number;
  readonly answer: number;
}

const SHAPES: readonly Shape[] = [
  { groups: 1, samples: 8, prompt: 448, answer: 64 },
  { groups: 1, samples: 8, prompt: 112, answer: 16 },
  { groups: 4, samples: 8, prompt: 112, answer: 16 },
  { groups: 8, samples: 8, prompt: 16, answer: 16 },
  // Nothing to share: what looking for it costs.
  { groups: 8, samples: 1, prompt: 448, answer: 64 },
  { groups: 32, samples: 1, prompt: 48, answer: 16 },
];

function batchOf({ groups, samples, prompt, answer }: Shape, vocabulary: number): LossBatch {
  const token = (n: number) => (n * 7919 + ((n * n) % 127)) % vocabulary;
  const sequences = Array.from({ length: groups * samples }, (_, s): LearnerSequence => {
    const group = Math.floor(s / samples);
    const length = prompt + answer;
    return {
      tokens: Int32Array.from({ length }, (_, t) => token(t < prompt ? 1000 * group + t : 1000 * (groups + s) + t)),
      predict: Uint8Array.from({ length }, (_, t) => (t < prompt ? 0 : 1)),
    };
  });
  const column = () => sequences.map((_, s) => new Float32Array(answer).fill(s % 2 === 0 ? 1e-3 : -1e-3));
  return {
    temperature: 1,
    sequences,
    inputs: Object.fromEntries(POLICY_GRADIENT.inputs.map(name => [name, column()])),
  };
}

/** Tree-packed training beside the same batch with nothing shared. */
export async function run(names: string[]): Promise<void> {
  const report = new Report('tree');
  for (const name of names.length > 0 ? names : ['0.75M', '25M', '135M']) {
    const shape = MODELS[name];
    if (shape === undefined) throw new Error(`no model '${name}'; there are ${Object.keys(MODELS).join(', ')}`);
    report.add(await withConfig(shape, directory => measure(name, directory, shape.vocabulary)));
  }
  // What other pages quote has every model in it.
  if (names.length === 0) report.save();
}

async function measure(name: string, directory: string, vocabulary: number): Promise<Table> {
  const model = new Model(directory, 1);
  const program = record(POLICY_GRADIENT);
  const options = {
    threads: THREADS,
    maxTokens: 4096,
    betas: [0.9, 0.95],
    eps: 1e-8,
    weightDecay: 0,
    maxNorm: 1,
  } as const;
  const learners = [false, true].map(treePacking => new OnnxLearnerCore(model, { ...options, treePacking }));
  const rows: Table['rows'][number][] = [];
  for (const shape of SHAPES) {
    const batch = batchOf(shape, vocabulary);
    const cases = learners.map((learner, i) => ({
      name: `${i}`,
      run: async () => {
        learner.zeroGrad();
        await learner.forwardBackward(batch, program);
        return undefined;
      },
    }));
    const times = await interleave(cases, { rounds: 3, seconds: 2 });
    const [unshared, shared] = ['0', '1'].map(key => times.get(key)!) as [number, number];
    const tokens = batch.sequences.reduce((sum, sequence) => sum + inputTokens(sequence).length, 0);
    const packed = packBatch(batch.sequences, model.config).rows.tree.tokens.length;
    const { groups, samples, prompt, answer } = shape;
    rows.push([
      `${groups} × ${samples} × (${prompt} + ${answer})`,
      tokens,
      packed,
      1e3 * unshared,
      1e3 * shared,
      `${(tokens / shared).toFixed(0)} tok/s`,
      tokens / packed,
      unshared / shared,
    ]);
  }
  for (const learner of learners) await learner.close();
  return {
    title: `${name}: forward, loss, backward; groups × samples × (prompt + answer)`,
    columns: ['batch', 'tokens', 'computed', 'unshared ms', 'packed ms', 'packed rate', 'fewer tokens', 'speed-up'],
    rows,
  };
}
