import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OnnxLearnerCore } from '../src/engines/onnx/learner.ts';
import { record } from '../src/engines/onnx/loss-program.ts';
import { Model } from '../src/engines/onnx/model.ts';
import type { SamplerOptions } from '../src/engines/onnx/sampler.ts';
import { writeCheckpoint } from '../src/nn/checkpoint/directory.ts';
import { benchSampler, decodeCase, decodeSteps } from './decode-case.ts';
import { type Case, type Cell, interleave, Report, type Table, THREADS } from './harness.ts';
import { MODELS, type ModelShape, withConfig } from './models.ts';
import { Peer } from './peer.ts';
import { POLICY_GRADIENT, requests, trainingBatch } from './workload.ts';

const threads = THREADS === 1 ? '1 thread' : `${THREADS} threads`;
const PROMPT = 16;
const NEW = 16;
const GENERATE_BATCHES = [1, 16, 64];
const DECODE_BATCHES = [1, 16];

/** What is decoded with, on both sides. */
const PRECISIONS: readonly {
  readonly own: string;
  readonly peer: string;
  readonly options: Partial<SamplerOptions>;
}[] = [
  { own: 'f32', peer: 'f32', options: {} },
  { own: 'int8', peer: 'q8_0', options: { dtype: 'int8' } },
];

/**
 * The embedded engine beside PyTorch eager, Transformers' `generate` and llama.cpp: the same weights, batch and
 * threads, in turns.
 */
export async function run(names: string[]): Promise<void> {
  const report = new Report('peers');
  for (const name of names.length > 0 ? names : Object.keys(MODELS)) {
    const shape = MODELS[name];
    if (shape === undefined) throw new Error(`no model '${name}'; there are ${Object.keys(MODELS).join(', ')}`);
    for (const table of await withConfig(shape, config => compare(name, shape, config))) report.add(table);
  }
  if (names.length === 0) report.save();
}

async function compare(name: string, shape: ModelShape, config: string): Promise<Table[]> {
  const model = new Model(config, 1);
  const directory = mkdtempSync(join(tmpdir(), 'tokenloop-peers-'));
  try {
    const { rawConfig, layout, weights } = model;
    await writeCheckpoint(join(directory, 'model'), { rawConfig, layout, weights, carry: config });
    // One after another, so that no peer's idle threads are about while another is measured.
    const torch = new Peer('torch_peer.py', [join(directory, 'model'), THREADS]);
    const rows = [await training(shape, model, torch)];
    for (const batch of GENERATE_BATCHES) rows.push(await generation(model, torch, batch));
    await torch.close();
    const llama = new Peer('llama_peer.py', [join(directory, 'model'), THREADS]);
    const decoded = await decoding(shape, model, llama);
    await llama.close();
    return [
      {
        title: `${name} beside PyTorch and Transformers: tokens a second, ${threads}`,
        columns: ['what', 'peer', 'tokenloop', '×'],
        rows,
      },
      {
        title: `${name} beside llama.cpp: decoded tokens a second after ${PROMPT}, ${threads}`,
        columns: ['precision', 'batch', 'llama_decode', 'and its sampler', 'tokenloop', '× llama_decode', '× both'],
        rows: decoded,
      },
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const asLists = (rows: readonly { readonly tokens: Int32Array }[]) => rows.map(({ tokens }) => [...tokens]);

/** A table row: rates and their ratio, from times measured in turns. */
async function ratio(what: string, tokens: number, peer: Case['run'], own: Case['run']): Promise<Cell[]> {
  const cases = [
    { name: 'peer', run: peer },
    { name: 'own', run: own },
  ];
  const times = await interleave(cases, { rounds: 3, seconds: 4 });
  const [theirs, ours] = [times.get('peer')!, times.get('own')!];
  return [what, tokens / theirs, tokens / ours, theirs / ours];
}

function benchLearner(model: Model, maxTokens: number): OnnxLearnerCore {
  const options = { threads: THREADS, maxTokens, betas: [0.9, 0.95], eps: 1e-8 } as const;
  return new OnnxLearnerCore(model, { ...options, weightDecay: 0, maxNorm: 1 });
}

/** Throws unless both sides say the same: sums of many float32 log-probabilities in different orders. */
function checkSame(what: string, theirs: number, ours: number, tolerance: number): void {
  if (Math.abs(theirs - ours) <= tolerance * Math.abs(theirs)) return;
  throw new Error(`the peer's ${what} is ${theirs} and the engine's ${ours}: they do not compute the same thing`);
}

async function training(shape: ModelShape, model: Model, peer: Peer): Promise<Cell[]> {
  const [rows, length] = shape.batch;
  const batch = trainingBatch(rows, length, shape.vocabulary);
  const program = record(POLICY_GRADIENT);
  const learner = benchLearner(model, rows * length);
  const request = { op: 'train', tokens: asLists(batch.sequences) };
  const ask = () => peer.ask<{ readonly seconds: number; readonly loss: number }>(request);
  checkSame('loss', (await ask()).loss, (await learner.forwardBackward(batch, program)).loss!, 1e-4);
  const row = await ratio(
    `training ${rows} × ${length}`,
    rows * length,
    async () => (await ask()).seconds,
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

async function generation(model: Model, peer: Peer, batch: number): Promise<Cell[]> {
  const answers = requests(batch, PROMPT, NEW, model.config.vocabSize);
  const sampler = benchSampler(model);
  const request = { op: 'generate', tokens: asLists(answers), new: NEW };
  const row = await ratio(
    `generate ${NEW} after ${PROMPT}, batch ${batch}`,
    batch * NEW,
    async () => (await peer.ask<{ readonly seconds: number }>(request)).seconds,
    async () => {
      sampler.submit(answers);
      while (sampler.busy) await sampler.step();
      return undefined;
    },
  );
  await sampler.close();
  return row;
}

/** Decode steps alone, prompts computed beforehand; tokens are drawn at temperature 1 on both sides. */
async function decoding(shape: ModelShape, model: Model, peer: Peer): Promise<Cell[][]> {
  await sameScore(shape, model, peer);
  const rows: Cell[][] = [];
  for (const { own, peer: type, options } of PRECISIONS) {
    for (const batch of DECODE_BATCHES) {
      const steps = decodeSteps(model, batch, PROMPT);
      const tokens = asLists(requests(batch, PROMPT, steps, model.config.vocabSize));
      const ours = decodeCase(model, { batch, prompt: PROMPT, steps }, options);
      let drawing = Number.POSITIVE_INFINITY;
      const theirs: Case = {
        name: 'peer',
        run: async () => {
          const request = { op: 'decode', type, tokens, new: steps };
          const { seconds, sampling } = await peer.ask<{ readonly seconds: number; readonly sampling: number }>(
            request,
          );
          drawing = Math.min(drawing, sampling / steps);
          return seconds / steps;
        },
      };
      const times = await interleave([theirs, ours], { rounds: 3, seconds: 4 });
      await ours.close();
      const [decode, step] = [times.get('peer')!, times.get(ours.name)!];
      const rates = [batch / decode, batch / (decode + drawing), batch / step];
      rows.push([`${own} / ${type}`, batch, ...rates, decode / step, (decode + drawing) / step]);
    }
  }
  return rows;
}

/** The GGUF file holds the same model. */
async function sameScore(shape: ModelShape, model: Model, peer: Peer): Promise<void> {
  const batch = trainingBatch(2, PROMPT, shape.vocabulary);
  const request = { op: 'score', type: 'f32', tokens: asLists(batch.sequences) };
  const { logprob } = await peer.ask<{ readonly logprob: number }>(request);
  const learner = benchLearner(model, 4 * PROMPT);
  const { logprobs } = await learner.forward(batch);
  await learner.close();
  const ours = logprobs.reduce((sum, row) => sum + row.reduce((total, value) => total + value, 0), 0);
  checkSame('log-probability', logprob, ours, 1e-3);
}
