import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { OnnxLearnerCore } from '../src/engines/onnx/learner.ts';
import { record } from '../src/engines/onnx/loss-program.ts';
import { Model } from '../src/engines/onnx/model.ts';
import { OnnxSamplerCore } from '../src/engines/onnx/sampler.ts';
import { writeCheckpoint } from '../src/nn/checkpoint/directory.ts';
import { type Case, interleave, Report, type Table, THREADS } from './harness.ts';
import { MODELS, type ModelShape, withConfig } from './models.ts';
import { POLICY_GRADIENT, requests, trainingBatch } from './workload.ts';

const threads = THREADS === 1 ? '1 thread' : `${THREADS} threads`;
const BATCHES = [1, 16, 64];
const PROMPT = 16;
const NEW = 16;

/**
 * The embedded engine beside PyTorch eager and Transformers' `generate`: the same weights, batch and threads, in turns.
 * PEERS_PYTHON names a Python that has them.
 */
export async function run(names: string[]): Promise<void> {
  const report = new Report('peers');
  for (const name of names.length > 0 ? names : Object.keys(MODELS)) {
    const shape = MODELS[name];
    if (shape === undefined) throw new Error(`no model '${name}'; there are ${Object.keys(MODELS).join(', ')}`);
    report.add(await withConfig(shape, directory => compare(name, shape, directory)));
  }
  report.save();
}

type Answer = { readonly seconds: number; readonly loss?: number };

/** The peer's process; requests are answered one after another. */
class Peer {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(directory: string) {
    const script = fileURLToPath(new URL('../tools/peers/torch_peer.py', import.meta.url));
    const python = process.env.PEERS_PYTHON ?? 'python3';
    this.#process = spawn(python, [script, directory, String(THREADS)], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.#process.stdout! })[Symbol.asyncIterator]();
  }

  async ask(request: object): Promise<Answer> {
    this.#process.stdin!.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error('the peer ended; set PEERS_PYTHON to a Python with torch and transformers');
    return JSON.parse(value) as Answer;
  }

  close(): void {
    this.#process.stdin!.end();
  }
}

async function compare(name: string, shape: ModelShape, config: string): Promise<Table> {
  const model = new Model(config, 1);
  const directory = mkdtempSync(join(tmpdir(), 'tokenloop-peers-'));
  try {
    const { rawConfig, layout, weights } = model;
    await writeCheckpoint(join(directory, 'model'), { rawConfig, layout, weights, carry: config });
    const peer = new Peer(join(directory, 'model'));
    const rows = [await training(shape, model, peer)];
    for (const batch of BATCHES) rows.push(await generation(model, peer, batch));
    peer.close();
    return { title: `${name}: tokens a second, ${threads}`, columns: ['what', 'peer', 'tokenloop', '×'], rows };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const asLists = (rows: readonly { readonly tokens: Int32Array }[]) => rows.map(({ tokens }) => [...tokens]);

/** A table row: rates and their ratio, from times measured in turns. */
async function ratio(what: string, tokens: number, peer: Case['run'], own: Case['run']): Promise<(string | number)[]> {
  const cases = [
    { name: 'peer', run: peer },
    { name: 'own', run: own },
  ];
  const times = await interleave(cases, { rounds: 3, seconds: 4 });
  const [theirs, ours] = [times.get('peer')!, times.get('own')!];
  return [what, tokens / theirs, tokens / ours, theirs / ours];
}

async function training(shape: ModelShape, model: Model, peer: Peer): Promise<(string | number)[]> {
  const [rows, length] = shape.batch;
  const batch = trainingBatch(rows, length, shape.vocabulary);
  const program = record(POLICY_GRADIENT);
  const options = { threads: THREADS, maxTokens: rows * length, betas: [0.9, 0.95], eps: 1e-8 } as const;
  const learner = new OnnxLearnerCore(model, { ...options, weightDecay: 0, maxNorm: 1 });
  const request = { op: 'train', tokens: asLists(batch.sequences) };
  const theirs = (await peer.ask(request)).loss!;
  const ours = (await learner.forwardBackward(batch, program)).loss!;
  // Sums of thousands of float32 log-probabilities in different orders.
  if (!(Math.abs(theirs - ours) <= 1e-4 * Math.abs(theirs))) {
    throw new Error(`the peer's loss is ${theirs} and the engine's ${ours}: they do not compute the same thing`);
  }
  const row = await ratio(
    `training ${rows} × ${length}`,
    rows * length,
    async () => (await peer.ask(request)).seconds,
    async () => {
      // Without this the second pass would add to the first one's gradient, which the peer does not do.
      learner.zeroGrad();
      const start = performance.now();
      await learner.forwardBackward(batch, program);
      return (performance.now() - start) / 1000;
    },
  );
  await learner.close();
  return row;
}

async function generation(model: Model, peer: Peer, batch: number): Promise<(string | number)[]> {
  const answers = requests(batch, PROMPT, NEW, model.config.vocabSize);
  const ignore = () => undefined;
  const options = { threads: THREADS, maxRows: 256, prefillTokens: 4096, prefixCacheBytes: 0 };
  const sampler = new OnnxSamplerCore(model, options, { token: ignore, finished: ignore });
  const request = { op: 'generate', tokens: asLists(answers), new: NEW };
  const row = await ratio(
    `generate ${NEW} after ${PROMPT}, batch ${batch}`,
    batch * NEW,
    async () => (await peer.ask(request)).seconds,
    async () => {
      sampler.submit(answers);
      while (sampler.busy) await sampler.step();
      return undefined;
    },
  );
  await sampler.close();
  return row;
}
