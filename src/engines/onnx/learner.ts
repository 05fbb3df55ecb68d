import { gradients } from '../../nn/derivative.ts';
import { input, type Node } from '../../nn/graph.ts';
import { trainingForm, valueForm, type Weights, weightInputs } from '../../nn/models/decoder.ts';
import { view } from '../../nn/models/parameters.ts';
import { emit } from '../../nn/onnx.ts';
import type { ForwardResult, LearnerBatch, LossBatch, OptimizerStepResult } from '../contracts.ts';
import { checkSequence, inputTokens, membership, microBatches, type PackedBatch, packBatch } from './batch.ts';
import type { Device } from './device.ts';
import { type LossProgram, replay } from './loss-program.ts';
import type { Model } from './model.ts';
import { AdamW, clipFactor, globalNorm } from './optimizer.ts';
import { packedPositions } from './positions.ts';
import { PutAway } from './put-away.ts';
import { created, Session } from './session.ts';
import { symbolicOps } from './symbolic.ts';

export interface LearnerOptions {
  readonly threads: number;
  readonly device?: Device | undefined;
  /** Tokens per micro-batch, a shared prefix counted once. */
  readonly maxTokens: number;
  /** Whether prefixes that sequences share are computed once; they are when not given. */
  readonly treePacking?: boolean | undefined;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
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
  readonly #optimizer: AdamW;
  /** Where the optimizer's state is while it is not in memory. */
  #away: PutAway | undefined;
  /** The accumulated gradient, and the part that is added to it; made when first needed. */
  #gradient: Float32Array | undefined;
  #scratch: Float32Array | undefined;
  readonly #sessions = new Map<string, Promise<TrainingSession>>();
  #forwardSession: Promise<Session> | undefined;
  readonly #predicts: 'tokens' | 'values';
  /** True once a micro-batch has been accumulated since the last update. */
  #accumulated = false;

  constructor(model: Model, options: LearnerOptions) {
    this.#model = model;
    this.#options = options;
    this.#predicts = model.config.head === 'score' ? 'values' : 'tokens';
    // As usual, decay spares norms and biases.
    this.#optimizer = new AdamW(model.weights.length, { ...options, decayMask: model.layout });
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
      const feeds = { ...this.#feeds(packed, batch.temperature), ...this.#model.views(weights) };
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
    const training = await this.#trainingSession(program);
    const totals: Record<string, number> = { loss: 0 };
    for (const name of training.metrics) totals[name] = 0;
    for (const { indices, packed } of this.#micro(batch)) {
      const feeds: Feeds = { ...this.#feeds(packed, batch.temperature), ...this.#model.views(this.#model.weights) };
      for (const name of program.inputs) feeds[`loss.${name}`] = gather(batch.inputs[name]!, indices, packed.symbols.P);
      if (training.needsMembership) feeds.membership = membership(packed.offsets);
      const outputs = await training.session.run(feeds, packed.symbols, { outputs: this.#gradientOutputs() });
      this.#accumulate();
      totals.loss! += (outputs.loss as Float32Array)[0]!;
      for (const name of training.metrics) totals[name]! += (outputs[`metric.${name}`] as Float32Array)[0]!;
    }
    return totals;
  }

  optimizerStep(lr: number): OptimizerStepResult {
    if (!(lr >= 0 && Number.isFinite(lr))) throw new RangeError(`the learning rate is ${lr}; expected a number ≥ 0`);
    if (!this.#accumulated) throw new Error('an optimizer step needs a gradient: call forwardBackward first');
    const gradient = this.#sum();
    const gradNorm = globalNorm(gradient);
    if (!Number.isFinite(gradNorm)) {
      this.zeroGrad();
      throw new Error(
        `the gradient norm is ${gradNorm}; the update was refused and the weights are as before. Lower the learning rate or look at the last batch`,
      );
    }
    this.#takeBack();
    this.#optimizer.step(this.#model.weights, gradient, lr, clipFactor(gradNorm, this.#options.maxNorm));
    this.#model.version += 1;
    this.zeroGrad();
    return { gradNorm, lr };
  }

  zeroGrad(): void {
    this.#gradient?.fill(0);
    this.#accumulated = false;
  }

  /** A copy of the accumulated gradient, by parameter name (for tests and inspection). */
  gradient(): Record<string, Float32Array> {
    return Object.fromEntries(this.#model.layout.map(p => [p.name, view(this.#sum(), p).slice()]));
  }

  /**
   * Gives the memory of gradients back, and puts the optimizer's state into a temporary file until an update or a
   * checkpoint needs it. Says how many bytes that was.
   */
  offload(): number {
    if (this.#accumulated) throw new Error('a gradient is waiting for its optimizer step; offload after it');
    const gradients = (this.#gradient?.byteLength ?? 0) + (this.#scratch?.byteLength ?? 0);
    [this.#gradient, this.#scratch] = [undefined, undefined];
    if (this.#away !== undefined || !this.#optimizer.holdsState) return gradients;
    const { firstMoment, secondMoment } = this.#optimizer.state();
    this.#away = new PutAway([firstMoment, secondMoment]);
    this.#optimizer.release();
    return gradients + firstMoment.byteLength + secondMoment.byteLength;
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
  }

  #check(batch: LearnerBatch): void {
    const limits = { vocabSize: this.#model.config.vocabSize, context: this.#model.config.maxPositions };
    batch.sequences.forEach((sequence, index) => {
      checkSequence(sequence, index, limits);
    });
    if (!(batch.temperature > 0)) throw new Error(`the learner needs a temperature above 0, got ${batch.temperature}`);
  }

  *#micro(batch: LearnerBatch): Generator<{ indices: number[]; packed: PackedBatch }> {
    // A sequence without predictions has nothing to compute.
    const used = batch.sequences.flatMap((sequence, index) => (sequence.predict.includes(1) ? [index] : []));
    const { maxTokens, treePacking = true } = this.#options;
    const inputs = used.map(index => inputTokens(batch.sequences[index]!));
    for (const group of microBatches(inputs, maxTokens, treePacking)) {
      const indices = group.map(position => used[position]!);
      const sequences = indices.map(index => batch.sequences[index]!);
      yield { indices, packed: packBatch(sequences, this.#model.config, treePacking) };
    }
  }

  #feeds({ feeds, rows }: PackedBatch, temperature: number): Feeds {
    const positions = packedPositions(this.#model, rows);
    return { ...feeds, ...positions, inverse_temperature: Float32Array.of(1 / temperature) };
  }

  #gradientOutputs(): Record<string, Float32Array> {
    if (this.#accumulated) this.#scratch ??= new Float32Array(this.#model.weights.length);
    const target = this.#accumulated ? this.#scratch! : this.#sum();
    return Object.fromEntries(this.#model.layout.map(p => [`grad.${p.name}`, view(target, p)]));
  }

  #accumulate(): void {
    if (this.#accumulated) {
      const [sum, part] = [this.#sum(), this.#scratch!];
      for (let i = 0; i < sum.length; i++) sum[i]! += part[i]!;
    }
    this.#accumulated = true;
  }

  #sum(): Float32Array {
    this.#gradient ??= new Float32Array(this.#model.weights.length);
    return this.#gradient;
  }

  #takeBack(): void {
    if (this.#away === undefined) return;
    const { firstMoment, secondMoment } = this.#optimizer.state();
    this.#away.takeBack([firstMoment, secondMoment]);
    this.#away = undefined;
  }

  async #createForwardSession(): Promise<Session> {
    return Session.create(emit(this.#predictions(this.#weightInputs())), {
      threads: this.#options.threads,
      device: this.#options.device,
    });
  }

  #weightInputs(): Weights {
    return weightInputs(this.#model.inputs, this.#model.adapter);
  }

  #predictions(weights: Weights): Predictions {
    const { config } = this.#model;
    if (this.#predicts === 'values') return { values: valueForm(config, weights) };
    const { logprobs, entropy } = trainingForm(config, weights);
    return { logprobs, entropy };
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
    const { layout } = this.#model;
    const weights = this.#weightInputs();
    const { loss, metrics } = lossNodes(program, this.#predictions(weights));
    const outputs: Parameters<typeof emit>[0] = { loss, ...metrics };
    const names = layout.map(p => p.name);
    const grads = gradients(loss, names.map(weights));
    const model = emit({ ...outputs, ...Object.fromEntries(names.map((name, i) => [`grad.${name}`, grads[i]!])) });
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
