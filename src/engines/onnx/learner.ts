import { gradients } from '../../nn/derivative.ts';
import { input, type Node } from '../../nn/graph.ts';
import { trainingForm, valueForm } from '../../nn/models/decoder.ts';
import { type Weights, weightInputs } from '../../nn/models/weights.ts';
import { emit } from '../../nn/onnx.ts';
import type { ForwardResult, LearnerBatch, LossBatch, OptimizerStepResult } from '../contracts.ts';
import { checkSequence, inputTokens, microBatches, type PackedBatch, packBatch } from './batch.ts';
import type { Device } from './device.ts';
import { Gradient } from './gradient.ts';
import { HeadBlocks } from './head-blocks.ts';
import { type LossProgram, replay } from './loss-program.ts';
import type { Model, Views } from './model.ts';
import { hiddenMatrices, Muon, type MuonOptions } from './muon.ts';
import { AdamW, clipFactor, globalNorm } from './optimizer.ts';
import { packedPositions } from './positions.ts';
import { PutAway } from './put-away.ts';
import { created, Session } from './session.ts';
import { symbolicOps } from './symbolic.ts';
import { checkTogether, membership, unitBatches, unitsOf } from './units.ts';

export interface LearnerOptions {
  readonly threads: number;
  readonly device?: Device | undefined;
  /** Tokens per micro-batch, a shared prefix counted once. */
  readonly maxTokens: number;
  /** Whether prefixes that sequences share are computed once; they are when not given. */
  readonly treePacking?: boolean | undefined;
  /** Bytes of logits that exist at a time, for a full micro-batch; 64 MiB when not given. */
  readonly logitsBytes?: number | undefined;
  /** Whether activations inside a layer are computed anew on the way back instead of being kept. */
  readonly recompute?: boolean | undefined;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
  /** Moves the matrices inside the layers; AdamW moves everything when not given. */
  readonly muon?: MuonOptions | undefined;
  /** Global gradient norm is clipped to it. */
  readonly maxNorm: number;
}

type Feeds = Record<string, Parameters<Session['run']>[0][string]>;

interface TrainingSession {
  readonly session: Session;
  readonly metrics: readonly string[];
  readonly needsMembership: boolean;
}

/**
 * The learning half of the embedded engine; runs inside the engine's thread. Weights and gradients are flat arrays in
 * the checkpoint's layout; sessions read and write views of them.
 */
export class OnnxLearnerCore {
  readonly #model: Model;
  readonly #options: LearnerOptions;
  readonly #optimizer: AdamW | Muon;
  /** Where the optimizer's state is while it is not in memory. */
  #away: PutAway | undefined;
  readonly #gradient: Gradient;
  /** Of a model that predicts tokens. */
  readonly #head: HeadBlocks | undefined;
  readonly #sessions = new Map<string, Promise<TrainingSession>>();
  #forwardSession: Promise<Session> | undefined;
  readonly #predicts: 'tokens' | 'values';

  constructor(model: Model, options: LearnerOptions) {
    this.#model = model;
    this.#options = options;
    this.#predicts = model.config.head === 'score' ? 'values' : 'tokens';
    if (this.#predicts === 'tokens') {
      const { logitsBytes = 64 * 2 ** 20, maxTokens } = options;
      const limit = { logits: logitsBytes / Float32Array.BYTES_PER_ELEMENT, tokens: maxTokens };
      this.#head = new HeadBlocks(model.config, model.inputs, limit);
    }
    this.#gradient = new Gradient(model.layout, this.#head);
    // As usual, decay spares norms and biases.
    const [size, adam] = [model.weights.length, { ...options, decayMask: model.layout }];
    const { muon, threads, device } = options;
    this.#optimizer = muon
      ? new Muon(size, adam, hiddenMatrices(model.layout), muon, { threads, device })
      : new AdamW(size, adam);
  }

  async forward(batch: LearnerBatch, which: 'policy' | 'reference' = 'policy'): Promise<ForwardResult> {
    const weights = which === 'policy' ? this.#model.weights : this.#model.reference();
    return this.#forward(batch, weights, ['logprobs', 'entropy']);
  }

  /** Of a model with a value head. */
  async values(batch: LearnerBatch): Promise<Float32Array[]> {
    return (await this.#forward(batch, this.#model.weights, ['values'])).values;
  }

  async #forward<Name extends 'logprobs' | 'entropy' | 'values'>(
    batch: LearnerBatch,
    weights: Float32Array,
    names: readonly Name[],
  ): Promise<Record<Name, Float32Array[]>> {
    const asked = (names as readonly string[]).includes('values') ? 'values' : 'tokens';
    if (asked !== this.#predicts) {
      throw new Error(
        `the model predicts ${this.#predicts}, and was asked about ${asked}: it is not that kind of model`,
      );
    }
    this.#check(batch);
    this.#forwardSession ??= this.#createForwardSession();
    const session = await this.#forwardSession;
    const result = Object.fromEntries(
      names.map(name => [name, batch.sequences.map(() => new Float32Array(0))]),
    ) as Record<Name, Float32Array[]>;
    for (const { indices, packed } of this.#micro(batch)) {
      const feeds = { ...this.#feeds(packed, batch.temperature), ...this.#views(weights) };
      const outputs = await session.run(feeds, packed.symbols);
      for (const name of names) {
        const values = outputs[name] as Float32Array;
        indices.forEach((index, s) => {
          result[name][index] = values.slice(packed.offsets[s]!, packed.offsets[s + 1]!);
        });
      }
    }
    return result;
  }

  /** The loss arrives as a recorded program (see loss-program.ts). */
  async forwardBackward(batch: LossBatch, program: LossProgram): Promise<Record<string, number>> {
    this.#check(batch);
    checkLossInputs(batch, program, this.#predicts);
    checkTogether(batch);
    const { together = 1 } = batch;
    const training = await this.#trainingSession(program);
    const totals: Record<string, number> = { loss: 0 };
    for (const name of training.metrics) totals[name] = 0;
    for (const { indices, packed } of this.#micro(batch, together)) {
      const feeds: Feeds = { ...this.#feeds(packed, batch.temperature), ...this.#views(this.#model.weights) };
      for (const name of program.inputs) feeds[`loss.${name}`] = gather(batch.inputs[name]!, indices, packed.symbols.P);
      const units = unitsOf(indices, together);
      if (training.needsMembership) feeds.membership = membership(packed.offsets, units);
      const symbols = { ...packed.symbols, S: units.at(-1)! + 1 };
      const outputs = await training.session.run(feeds, symbols, { outputs: this.#gradient.outputs() });
      this.#gradient.add(outputs, packed.feeds.tokens);
      totals.loss! += (outputs.loss as Float32Array)[0]!;
      for (const name of training.metrics) totals[name]! += (outputs[`metric.${name}`] as Float32Array)[0]!;
    }
    return totals;
  }

  async optimizerStep(lr: number): Promise<OptimizerStepResult> {
    if (!(lr >= 0 && Number.isFinite(lr))) throw new RangeError(`the learning rate is ${lr}; expected a number ≥ 0`);
    if (!this.#gradient.filled) throw new Error('an optimizer step needs a gradient: call forwardBackward first');
    const gradNorm = globalNorm(this.#gradient.sum);
    if (!Number.isFinite(gradNorm)) {
      this.zeroGrad();
      throw new Error(
        `the gradient norm is ${gradNorm}; the update was refused and the weights are as before. Lower the learning rate or look at the last batch`,
      );
    }
    this.#takeBack();
    await this.#optimizer.step(
      this.#model.weights,
      this.#gradient.sum,
      lr,
      clipFactor(gradNorm, this.#options.maxNorm),
    );
    this.#model.version += 1;
    this.zeroGrad();
    return { gradNorm, lr };
  }

  zeroGrad(): void {
    this.#gradient.clear();
  }

  /** A copy of the accumulated gradient, by parameter name (for tests and inspection). */
  gradient(): Record<string, Float32Array> {
    return this.#gradient.byName();
  }

  /**
   * Gives the memory of gradients back, and puts the optimizer's state into a temporary file until an update or a
   * checkpoint needs it. Says how many bytes that was.
   */
  offload(): number {
    if (this.#gradient.filled) throw new Error('a gradient is waiting for its optimizer step; offload after it');
    const gradients = this.#gradient.release();
    if (this.#away !== undefined || !this.#optimizer.holdsState) return gradients;
    const { firstMoment, secondMoment } = this.#optimizer.state();
    this.#away = new PutAway([firstMoment, secondMoment]);
    this.#optimizer.release();
    return gradients + firstMoment.byteLength + secondMoment.byteLength;
  }

  get optimizerName(): 'adam' | 'muon' {
    return this.#optimizer instanceof Muon ? 'muon' : 'adam';
  }

  optimizerState(): ReturnType<AdamW['state']> {
    this.#takeBack();
    return this.#optimizer.state();
  }

  /** Also forgets the accumulated gradient, which belongs to the weights before. */
  loadOptimizerState(state: ReturnType<AdamW['state']>): void {
    this.#away?.discard();
    this.#away = undefined;
    this.#optimizer.load(state);
    this.zeroGrad();
  }

  async close(): Promise<void> {
    this.#away?.discard();
    this.#away = undefined;
    for (const { session } of await created([...this.#sessions.values()])) await session.release();
    for (const session of await created([this.#forwardSession])) await session.release();
    if (this.#optimizer instanceof Muon) await this.#optimizer.close();
  }

  #check(batch: LearnerBatch): void {
    const limits = { vocabSize: this.#model.config.vocabSize, context: this.#model.config.maxPositions };
    batch.sequences.forEach((sequence, index) => {
      checkSequence(sequence, index, limits);
    });
    if (!(batch.temperature > 0)) throw new Error(`the learner needs a temperature above 0, got ${batch.temperature}`);
  }

  *#micro(batch: LearnerBatch, together = 1): Generator<{ indices: number[]; packed: PackedBatch }> {
    // A sequence without predictions has nothing to compute.
    const used = batch.sequences.flatMap((sequence, index) => (sequence.predict.includes(1) ? [index] : []));
    const { maxTokens, treePacking = true } = this.#options;
    const inputs = used.map(index => inputTokens(batch.sequences[index]!));
    const groups =
      together === 1
        ? microBatches(inputs, maxTokens, treePacking)
        : unitBatches(inputs, unitsOf(used, together), maxTokens, treePacking);
    for (const group of groups) {
      const indices = group.map(position => used[position]!);
      const sequences = indices.map(index => batch.sequences[index]!);
      yield { indices, packed: packBatch(sequences, this.#model.config, treePacking) };
    }
  }

  #feeds({ feeds, rows }: PackedBatch, temperature: number): Feeds {
    const positions = packedPositions(this.#model, rows);
    return { ...feeds, ...positions, inverse_temperature: Float32Array.of(1 / temperature) };
  }

  #views(flat: Float32Array): Views {
    const views = this.#model.views(flat);
    return this.#head ? { ...views, ...this.#head.views(views[this.#head.matrix.name] as Float32Array) } : views;
  }

  #takeBack(): void {
    if (this.#away === undefined) return;
    const { firstMoment, secondMoment } = this.#optimizer.state();
    this.#away.takeBack([firstMoment, secondMoment]);
    this.#away = undefined;
  }

  async #createForwardSession(): Promise<Session> {
    const { embedded: _, ...predictions } = this.#predictions(this.#weightInputs(), true);
    return Session.create(emit(predictions), {
      threads: this.#options.threads,
      device: this.#options.device,
    });
  }

  #weightInputs(): Weights {
    const { inputs, adapter, frozen } = this.#model;
    const blocks = this.#head?.blocks ?? [];
    return weightInputs([...inputs, ...blocks], { adapter, frozen, blocks: this.#head?.names });
  }

  #predictions(weights: Weights, withEntropy: boolean): Predictions & { readonly embedded?: Node } {
    const { config } = this.#model;
    const { recompute } = this.#options;
    if (this.#predicts === 'values') return { values: valueForm(config, weights, { recompute }) };
    const { logprobs, entropy, embedded } = trainingForm(config, weights, { recompute, withEntropy });
    return { logprobs, entropy, embedded };
  }

  #trainingSession(program: LossProgram): Promise<TrainingSession> {
    let session = this.#sessions.get(program.key);
    if (session === undefined) {
      session = this.#createTrainingSession(program);
      this.#sessions.set(program.key, session);
    }
    return session;
  }

  async #createTrainingSession(program: LossProgram): Promise<TrainingSession> {
    const weights = this.#weightInputs();
    const { embedded, ...predictions } = this.#predictions(weights, program.entropy);
    const { loss, metrics } = lossNodes(program, predictions);
    const wanted = Object.entries(this.#gradient.wanted(weights, embedded));
    const found = gradients(
      loss,
      wanted.map(([, node]) => node),
    );
    const model = emit({ loss, ...metrics, ...Object.fromEntries(wanted.map(([name], i) => [name, found[i]!])) });
    return {
      session: await Session.create(model, { threads: this.#options.threads, device: this.#options.device }),
      metrics: Object.keys(program.metrics),
      needsMembership: model.inputs.some(({ name }) => name === 'membership'),
    };
  }
}

/** [P] each: what a model says about the predicted positions. */
type Predictions = { logprobs: Node; entropy: Node } | { values: Node };

function lossNodes(program: LossProgram, predictions: Predictions): { loss: Node; metrics: Record<string, Node> } {
  const replayed = replay(program, symbolicOps(), { ...predictions, input: name => input(`loss.${name}`, ['P']) });
  const metrics = Object.fromEntries(Object.entries(replayed.metrics).map(([name, node]) => [`metric.${name}`, node]));
  return { loss: replayed.loss, metrics };
}

function gather(parts: readonly Float32Array[], indices: readonly number[], length: number): Float32Array {
  const joined = new Float32Array(length);
  let offset = 0;
  for (const index of indices) {
    joined.set(parts[index]!, offset);
    offset += parts[index]!.length;
  }
  return joined;
}

function checkLossInputs(
  batch: LossBatch,
  program: Pick<LossProgram, 'key' | 'inputs' | 'values'>,
  predicts: 'tokens' | 'values',
): void {
  if (program.values !== (predicts === 'values')) {
    const [reads, has] = program.values ? ['a value head', 'none'] : ['log-probs', 'a value head instead'];
    throw new Error(`the loss ${program.key} reads ${reads}, and the model has ${has}`);
  }
  for (const name of program.inputs) {
    const parts = batch.inputs[name];
    if (parts === undefined) {
      throw new Error(`the loss ${program.key} needs the input '${name}', and the batch has none`);
    }
    batch.sequences.forEach((sequence, index) => {
      const expected = sequence.predict.reduce((count, p) => count + p, 0);
      const given = parts[index]?.length;
      if (given !== expected) {
        throw new Error(`input '${name}' of sequence ${index} has ${given} values for ${expected} predicted positions`);
      }
    });
  }
}
