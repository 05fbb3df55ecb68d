import type { InferenceSession, Tensor } from 'onnxruntime-node';
import type { DType, Shape } from '../../nn/graph.ts';
import type { EmittedModel, TensorInfo } from '../../nn/onnx.ts';
import { type Bindings, evalDim, showShape } from '../../nn/shape.ts';
import { type Device, deviceRefusal } from './device.ts';

/** A tensor's values by its type, bool as bytes 0 or 1. Views into larger buffers are respected. */
export type TensorData = Float32Array | BigInt64Array | Int32Array | Int8Array | Uint8Array;

export interface SessionOptions {
  /** Intra-operator threads; the runtime takes all cores if not given. */
  readonly threads?: number | undefined;
  /** The CPU if not given; what the device has no kernel for, the CPU computes. */
  readonly device?: Device | undefined;
  /** Products of 8-bit integers are computed the exact way where they would saturate (int8-probe.ts). */
  readonly exactInt8?: boolean | undefined;
}

export interface RunOptions {
  /** Arrays that receive outputs in place; each must have exactly the output's size. */
  readonly outputs?: Readonly<Record<string, TensorData>>;
  /** Names of the outputs to return; all if not given. */
  readonly fetch?: readonly string[];
}

const ARRAY = {
  float32: Float32Array,
  int64: BigInt64Array,
  int32: Int32Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
} as const;

type Runtime = typeof import('onnxruntime-node');
let runtime: Promise<Runtime> | undefined;

/** Loaded on first use, so that importing tokenloop never needs the native library. */
function loadRuntime(): Promise<Runtime> {
  runtime ??= import('onnxruntime-node').then(quiet).catch((cause: unknown) => {
    runtime = undefined;
    throw new Error(
      `the embedded engine needs onnxruntime-node, which cannot be loaded on ${process.platform}/${process.arch}: ` +
        `${messageOf(cause)}. Install it again with: ONNXRUNTIME_NODE_INSTALL=skip npm install`,
      { cause },
    );
  });
  return runtime;
}

/** The runtime would print why a device's library cannot be loaded, in red, beside throwing it. */
function quiet(loaded: Runtime): Runtime {
  loaded.env.logLevel = 'fatal';
  return loaded;
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));

/**
 * One ONNX model ready to run with any values of its symbols. `run` blocks the calling thread while it computes, one
 * event-loop turn later: leave fed and received arrays alone until it resolves. Tensors over the same array are made
 * once.
 */
export class Session {
  readonly model: EmittedModel;
  readonly #runtime: Runtime;
  readonly #tensors = new WeakMap<TensorData, Tensor>();
  readonly #outputs: ReadonlyMap<string, TensorInfo>;
  /** The symbols of the last run and what follows from them: most runs have the symbols of the run before. */
  #symbols: Bindings = {};
  readonly #dims = new Map<Shape, { readonly dims: readonly number[]; readonly size: number }>();
  readonly #shapes: Record<string, Tensor> = {};
  #session: InferenceSession | undefined;

  private constructor(model: EmittedModel, runtime: Runtime, session: InferenceSession) {
    this.model = model;
    this.#outputs = new Map(model.outputs.map(info => [info.name, info]));
    this.#runtime = runtime;
    this.#session = session;
  }

  static async create(model: EmittedModel, options: SessionOptions = {}): Promise<Session> {
    const { threads, device = 'cpu', exactInt8 = false } = options;
    if (threads !== undefined && !(Number.isInteger(threads) && threads >= 1)) {
      throw new RangeError(`session threads must be a positive integer, got ${threads}`);
    }
    const loaded = await loadRuntime();
    try {
      const session = await loaded.InferenceSession.create(model.bytes, {
        executionProviders: [device],
        graphOptimizationLevel: 'all',
        enableCpuMemArena: true,
        // Costs nothing without and saves a third of the memory (dynamic shapes defeat it anyway).
        enableMemPattern: false,
        // Nothing but fatal errors on stderr: errors are thrown, and the graph has checked what warnings are about.
        logSeverityLevel: 4,
        ...(threads === undefined ? {} : { intraOpNumThreads: threads }),
        // Idle sessions would otherwise keep spinning threads that slow every other session down.
        extra: { session: { force_spinning_stop: '1', ...(exactInt8 ? { x64quantprecision: '1' } : {}) } },
        externalData: model.externalData.map(each => ({ ...each })),
      });
      return new Session(model, loaded, session);
    } catch (cause) {
      const refusal = deviceRefusal(device, messageOf(cause));
      if (refusal !== undefined) throw new Error(refusal, { cause });
      throw new Error(`the runtime refused model "${model.name}": ${messageOf(cause)}`, { cause });
    }
  }

  /**
   * Feeds are typed arrays by input name (names that the model does not read are ignored), `symbols` gives every
   * symbolic dimension a positive value. Resolves with an array for each output, the given one where `outputs` has it.
   */
  async run(
    feeds: Readonly<Record<string, TensorData>>,
    symbols: Bindings = {},
    options: RunOptions = {},
  ): Promise<Record<string, TensorData>> {
    if (!this.#session) throw new Error(`model "${this.model.name}" was released and cannot run`);
    this.#bind(symbols);
    const tensors: Record<string, Tensor> = {};
    for (const info of this.model.inputs) tensors[info.name] = this.#tensor('input', info, feeds[info.name]);
    for (const { name, dims } of this.model.shapeInputs) tensors[name] = this.#shapes[name] ??= this.#shape(dims);
    const fetches = this.#fetches(options);
    try {
      const results = await this.#session.run(tensors, fetches);
      const arrays: Record<string, TensorData> = {};
      for (const name in fetches) arrays[name] = options.outputs?.[name] ?? (results[name]!.data as TensorData);
      return arrays;
    } catch (cause) {
      const shapes = Object.entries(tensors).map(([name, { type, dims }]) => `${name} ${type} ${showShape(dims)}`);
      throw new Error(`model "${this.model.name}" failed: ${messageOf(cause)} (fed ${shapes.join(', ')})`, { cause });
    }
  }

  /** Frees the runtime's memory. Safe to call twice. */
  async release(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.release();
  }

  /** Makes `symbols` the ones that shapes are worked out with. */
  #bind(symbols: Bindings): void {
    const names = Object.keys(symbols);
    const known = Object.keys(this.#symbols);
    if (names.length === known.length && names.every(name => symbols[name] === this.#symbols[name])) return;
    for (const symbol of names) {
      const value = symbols[symbol]!;
      if (!(Number.isInteger(value) && value >= 1)) {
        throw new RangeError(`model "${this.model.name}": symbol ${symbol} must be a positive integer, got ${value}`);
      }
    }
    this.#symbols = { ...symbols };
    this.#dims.clear();
    // New tensors, never the old ones rewritten: an earlier run may still be waiting for its turn.
    for (const { name } of this.model.shapeInputs) delete this.#shapes[name];
  }

  #fetches({ outputs = {}, fetch }: RunOptions): Record<string, Tensor | null> {
    const fetches: Record<string, Tensor | null> = {};
    for (const name of fetch ?? this.#outputs.keys()) {
      this.#output(name);
      fetches[name] = null;
    }
    for (const name in outputs) fetches[name] = this.#tensor('output', this.#output(name), outputs[name]);
    return fetches;
  }

  #output(name: string): TensorInfo {
    const info = this.#outputs.get(name);
    if (info !== undefined) return info;
    const names = [...this.#outputs.keys()].join(', ');
    throw new RangeError(`model "${this.model.name}" has no output "${name}", it has: ${names}`);
  }

  #tensor(kind: string, info: TensorInfo, array: TensorData | undefined): Tensor {
    const { shape, dtype } = info;
    const what = () => `model "${this.model.name}": ${kind} "${info.name}" ${dtype} ${showShape(shape)}`;
    if (!array) throw new RangeError(`${what()} was not given`);
    if (!(array instanceof ARRAY[dtype])) {
      throw new TypeError(`${what()} needs a ${ARRAY[dtype].name}, got a ${array.constructor.name}`);
    }
    const { dims, size } = this.#resolve(shape, what);
    if (size !== array.length) {
      throw new RangeError(`${what()} needs ${size} values (${showShape(dims)}), got ${array.length}`);
    }
    return this.#over(array, dtype, dims);
  }

  #resolve(shape: Shape, what: () => string): { readonly dims: readonly number[]; readonly size: number } {
    let resolved = this.#dims.get(shape);
    if (resolved === undefined) {
      try {
        const dims = shape.map(dim => evalDim(dim, this.#symbols));
        resolved = { dims, size: dims.reduce((product, dim) => product * dim, 1) };
      } catch (cause) {
        throw new RangeError(`${what()}: ${messageOf(cause)}`, { cause });
      }
      this.#dims.set(shape, resolved);
    }
    return resolved;
  }

  #over(array: TensorData, dtype: DType, dims: readonly number[]): Tensor {
    const known = this.#tensors.get(array);
    if (known && known.dims.length === dims.length && known.dims.every((dim, i) => dim === dims[i])) return known;
    const tensor = new this.#runtime.Tensor(dtype, array, dims);
    this.#tensors.set(array, tensor);
    return tensor;
  }

  /** The value of a graph input that holds a shape. */
  #shape(shape: Shape): Tensor {
    const { dims } = this.#resolve(shape, () => `model "${this.model.name}"`);
    return new this.#runtime.Tensor('int64', BigInt64Array.from(dims, BigInt), [dims.length]);
  }
}

/** Those that were made: a refusal was reported to whoever asked, and leaves nothing to release. */
export async function created<T>(promises: readonly (Promise<T> | undefined)[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises.filter(promise => promise !== undefined));
  return settled.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []));
}
