import type { InferenceSession, Tensor } from 'onnxruntime-node';
import type { DType, Shape } from '../../nn/graph.ts';
import type { EmittedModel, TensorInfo } from '../../nn/onnx.ts';
import { type Bindings, evalDim, showShape } from '../../nn/shape.ts';

/** A tensor's values: float32, int64, int32, and bool as bytes 0 or 1. Views into larger buffers are respected. */
export type TensorData = Float32Array | BigInt64Array | Int32Array | Uint8Array;

export interface SessionOptions {
  /** Intra-operator threads; the runtime takes all cores if not given. */
  readonly threads?: number;
}

export interface RunOptions {
  /** Arrays that receive outputs in place; each must have exactly the output's size. */
  readonly outputs?: Readonly<Record<string, TensorData>>;
  /** Names of the outputs to return; all if not given. */
  readonly fetch?: readonly string[];
}

const ARRAY = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, bool: Uint8Array } as const;

type Runtime = typeof import('onnxruntime-node');
let runtime: Promise<Runtime> | undefined;

/** Loaded on first use, so that importing tokenloop never needs the native library. */
function loadRuntime(): Promise<Runtime> {
  runtime ??= import('onnxruntime-node').catch((cause: unknown) => {
    runtime = undefined;
    throw new Error(
      `the embedded engine needs onnxruntime-node, which cannot be loaded on ${process.platform}/${process.arch}: ` +
        `${messageOf(cause)}. Install it again with: ONNXRUNTIME_NODE_INSTALL=skip npm install`,
      { cause },
    );
  });
  return runtime;
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
  readonly #shapes = new Map<string, BigInt64Array>();
  #session: InferenceSession | undefined;

  private constructor(model: EmittedModel, runtime: Runtime, session: InferenceSession) {
    this.model = model;
    this.#runtime = runtime;
    this.#session = session;
  }

  static async create(model: EmittedModel, options: SessionOptions = {}): Promise<Session> {
    const { threads } = options;
    if (threads !== undefined && !(Number.isInteger(threads) && threads >= 1)) {
      throw new RangeError(`session threads must be a positive integer, got ${threads}`);
    }
    const loaded = await loadRuntime();
    try {
      const session = await loaded.InferenceSession.create(model.bytes, {
        executionProviders: ['cpu'],
        graphOptimizationLevel: 'all',
        enableCpuMemArena: true,
        // Costs nothing without and saves a third of the memory (dynamic shapes defeat it anyway).
        enableMemPattern: false,
        // Nothing but fatal errors on stderr: errors are thrown, and the graph has checked what warnings are about.
        logSeverityLevel: 4,
        ...(threads === undefined ? {} : { intraOpNumThreads: threads }),
        // Idle sessions would otherwise keep spinning threads that slow every other session down.
        extra: { session: { force_spinning_stop: '1' } },
        externalData: model.externalData.map(each => ({ ...each })),
      });
      return new Session(model, loaded, session);
    } catch (cause) {
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
    for (const [symbol, value] of Object.entries(symbols)) {
      if (!(Number.isInteger(value) && value >= 1)) {
        throw new RangeError(`model "${this.model.name}": symbol ${symbol} must be a positive integer, got ${value}`);
      }
    }
    const tensors: Record<string, Tensor> = {};
    for (const info of this.model.inputs) tensors[info.name] = this.#tensor('input', info, feeds[info.name], symbols);
    for (const { name, dims } of this.model.shapeInputs) {
      tensors[name] = this.#shapeTensor(name, dims, symbols);
    }
    const fetches = this.#fetches(symbols, options);
    try {
      const results = await this.#session.run(tensors, fetches);
      const given = options.outputs ?? {};
      return Object.fromEntries(
        Object.keys(fetches).map(name => [name, given[name] ?? (results[name]!.data as TensorData)]),
      );
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

  #fetches(symbols: Bindings, { outputs = {}, fetch }: RunOptions): Record<string, Tensor | null> {
    const infos = new Map(this.model.outputs.map(info => [info.name, info]));
    for (const name of [...Object.keys(outputs), ...(fetch ?? [])]) {
      if (infos.has(name)) continue;
      throw new RangeError(
        `model "${this.model.name}" has no output "${name}", it has: ${[...infos.keys()].join(', ')}`,
      );
    }
    const wanted = new Set(fetch ? [...fetch, ...Object.keys(outputs)] : infos.keys());
    return Object.fromEntries(
      [...wanted].map(name => {
        const array = outputs[name];
        return [name, array ? this.#tensor('output', infos.get(name)!, array, symbols) : null];
      }),
    );
  }

  #tensor(kind: string, { name, shape, dtype }: TensorInfo, array: TensorData | undefined, symbols: Bindings): Tensor {
    const what = `model "${this.model.name}": ${kind} "${name}" ${dtype} ${showShape(shape)}`;
    if (!array) throw new RangeError(`${what} was not given`);
    if (!(array instanceof ARRAY[dtype])) {
      throw new TypeError(`${what} needs a ${ARRAY[dtype].name}, got a ${array.constructor.name}`);
    }
    const dims = this.#dims(what, shape, symbols);
    const size = dims.reduce((product, dim) => product * dim, 1);
    if (size !== array.length) {
      throw new RangeError(`${what} needs ${size} values (${showShape(dims)}), got ${array.length}`);
    }
    return this.#over(array, dtype, dims);
  }

  #dims(what: string, shape: Shape, symbols: Bindings): number[] {
    try {
      return shape.map(dim => evalDim(dim, symbols));
    } catch (cause) {
      throw new RangeError(`${what}: ${messageOf(cause)}`, { cause });
    }
  }

  #over(array: TensorData, dtype: DType, dims: readonly number[]): Tensor {
    const known = this.#tensors.get(array);
    if (known && known.dims.length === dims.length && known.dims.every((dim, i) => dim === dims[i])) return known;
    const tensor = new this.#runtime.Tensor(dtype, array, dims);
    this.#tensors.set(array, tensor);
    return tensor;
  }

  #shapeTensor(name: string, shape: Shape, symbols: Bindings): Tensor {
    const dims = this.#dims(`model "${this.model.name}"`, shape, symbols);
    const last = this.#shapes.get(name);
    if (last && dims.every((dim, i) => BigInt(dim) === last[i])) return this.#over(last, 'int64', [dims.length]);
    // A new array, never the old one rewritten: an earlier run may still be waiting for its turn.
    const array = BigInt64Array.from(dims, BigInt);
    this.#shapes.set(name, array);
    return this.#over(array, 'int64', [dims.length]);
  }
}
