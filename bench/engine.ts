import { OnnxLearnerCore } from '../src/engines/onnx/learner.ts';
import { record } from '../src/engines/onnx/loss-program.ts';
import { Model } from '../src/engines/onnx/model.ts';
import { decodeCase, decodeSteps } from './decode-case.ts';
import { type Case, interleave, Report, type Table, THREADS } from './harness.ts';
import { gemvLimit, type Limit, PRODUCT_FLOPS, productLimit, READ_BYTES, readLimit, readWeights } from './limits.ts';
import { MODELS, type ModelShape, withConfig } from './models.ts';
import { forwardFlops, POLICY_GRADIENT, trainingBatch } from './workload.ts';

const threads = THREADS === 1 ? '1 thread' : `${THREADS} threads`;
const BATCHES = [1, 16, 64, 256];
const PROMPT = 16;

/** The limits in operations and bytes a second: the best seen so far in this run. */
const reached = { arithmetic: 0, memory: 0 };

function seen(times: ReadonlyMap<string, number>, product: Limit, read?: Limit): void {
  reached.arithmetic = Math.max(reached.arithmetic, PRODUCT_FLOPS / times.get(product.name)!);
  if (read) reached.memory = Math.max(reached.memory, READ_BYTES / times.get(read.name)!);
}

/** Every time is measured in turns with the limit it is compared with. */
export async function run(names: string[]): Promise<void> {
  const report = new Report('engine');
  report.add(await limits());
  for (const name of names.length > 0 ? names : Object.keys(MODELS)) {
    const shape = MODELS[name];
    if (shape === undefined) throw new Error(`no model '${name}'; there are ${Object.keys(MODELS).join(', ')}`);
    for (const table of await withConfig(shape, directory => measure(name, shape, directory))) report.add(table);
  }
  report.save();
}

async function limits(): Promise<Table> {
  const weights = readWeights();
  const cases = await Promise.all([productLimit(THREADS), gemvLimit(weights), readLimit(weights)]);
  const times = await interleave(cases, { rounds: 5, seconds: 4 });
  seen(times, cases[0], cases[2]);
  await Promise.all(cases.map(each => each.close()));
  const row = (label: string, index: 0 | 1 | 2, work: number, unit: string) => {
    const seconds = times.get(cases[index].name)!;
    return [label, 1e3 * seconds, `${giga(work, seconds)} ${unit}`];
  };
  return {
    title: `Limits of this machine through the runtime, ${threads}`,
    columns: ['limit', 'ms', 'reached'],
    rows: [
      row('product 1024³', 0, PRODUCT_FLOPS, 'GFLOP/s'),
      row('one row × 256 MiB', 1, READ_BYTES, 'GB/s'),
      row('read 256 MiB', 2, READ_BYTES, 'GB/s'),
    ],
  };
}

const giga = (amount: number, seconds: number) => (amount / seconds / 1e9).toFixed(amount / seconds > 1e11 ? 0 : 1);

async function measure(name: string, shape: ModelShape, directory: string): Promise<Table[]> {
  const model = new Model(directory, 1);
  const product = await productLimit(THREADS);
  const tables = [await learning(name, shape, model, product), await decoding(name, model, product)];
  await product.close();
  return tables;
}

async function learning(name: string, shape: ModelShape, model: Model, product: Limit): Promise<Table> {
  const [rows, length] = shape.batch;
  const tokens = rows * length;
  const batch = trainingBatch(rows, length, shape.vocabulary);
  const program = record(POLICY_GRADIENT);
  const learner = new OnnxLearnerCore(model, {
    threads: THREADS,
    maxTokens: tokens,
    betas: [0.9, 0.95],
    eps: 1e-8,
    weightDecay: 0,
    maxNorm: 1,
  });
  const train: Case = {
    name: 'train',
    run: async () => {
      await learner.forwardBackward(batch, program);
      return undefined;
    },
  };
  const update: Case = {
    name: 'update',
    run: async () => {
      // The optimizer refuses to step without a gradient: `train` has left one, or a single token does.
      await learner.forwardBackward(trainingBatch(1, 1, shape.vocabulary), program);
      const start = performance.now();
      await learner.optimizerStep(0);
      return (performance.now() - start) / 1000;
    },
  };
  const forward: Case = {
    name: 'forward',
    run: async () => {
      await learner.forward(batch);
      return undefined;
    },
  };
  // The update comes right after training, as it does in a run, and leaves no accumulated gradient behind.
  const times = await interleave([product, forward, train, update], { rounds: 3, seconds: 4 });
  await learner.close();
  seen(times, product);
  const flops = forwardFlops(model.config, tokens, length);
  const passes = ([label, key, work]: readonly [string, string, number]) => {
    const seconds = times.get(key)!;
    const rate = `${giga(work, seconds)} GFLOP/s`;
    return [label, 1e3 * seconds, `${(tokens / seconds).toFixed(0)} tok/s`, rate, work / seconds / reached.arithmetic];
  };
  const seconds = times.get('update')!;
  const perWeight = `${((1e9 * seconds) / model.weights.length).toFixed(2)} ns/param`;
  return {
    title: `${name}: learning, ${rows} × ${length} tokens, ${model.weights.length} parameters`,
    columns: ['what', 'ms', 'rate', 'arithmetic', `of ${giga(reached.arithmetic, 1)} GFLOP/s`],
    rows: [
      passes(['forward, entropy', 'forward', flops]),
      passes(['forward, loss, backward', 'train', 3 * flops]),
      ['clip and AdamW', 1e3 * seconds, perWeight, '', ''],
    ],
  };
}

async function decoding(name: string, model: Model, product: Limit): Promise<Table> {
  const weights = readWeights();
  const read = await readLimit(weights);
  const rows: Table['rows'][number][] = [];
  const bytes = 4 * model.weights.length;
  for (const batch of BATCHES) {
    const work = forwardFlops(model.config, batch, PROMPT);
    const decode = decodeCase(model, { batch, prompt: PROMPT, steps: decodeSteps(model, batch, PROMPT) });
    const times = await interleave([product, read, decode], { rounds: 3, seconds: 2 });
    await decode.close();
    const seconds = times.get(decode.name)!;
    seen(times, product, read);
    const rate = `${(batch / seconds).toFixed(0)} tok/s`;
    rows.push([batch, 1e3 * seconds, rate, work / seconds / reached.arithmetic, bytes / seconds / reached.memory]);
  }
  await read.close();
  return {
    title: `${name}: decoding after ${PROMPT} tokens`,
    columns: ['rows', 'ms a step', 'rate', 'of arithmetic limit', 'weights read, of memory limit'],
    rows,
  };
}
