import { create, toBinary } from '@bufbuild/protobuf';
import {
  AttributeProtoSchema,
  AttributeProto_AttributeType as AttributeType,
  TensorProto_DataLocation as DataLocation,
  GraphProtoSchema,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
  StringStringEntryProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  TensorShapeProto_DimensionSchema,
  TensorShapeProtoSchema,
  TypeProto_TensorSchema,
  TypeProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from 'onnx-buf';
import { ancestors } from './derivative.ts';
import { type ConstantData, type Dim, type DType, dtypeOf, type Node, type Shape } from './graph.ts';
import { ONNX_TYPE } from './primitives/logic.ts';
import type { Emission, OnnxAttribute } from './primitives/primitive.ts';
import { primitives } from './primitives/table.ts';
import { sameShape, showShape, sizeOf } from './shape.ts';

const OPSET = 21n;
/** The IR version that introduced opset 21. */
const IR_VERSION = 10n;
/** Larger tensors travel beside the model bytes: a protobuf message ends at 2 GiB and copying weights costs time. */
const EXTERNAL_BYTES = 1 << 16;

export interface TensorInfo {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
}

export interface EmittedModel {
  /** For error messages. */
  readonly name: string;
  /** A serialized ONNX ModelProto. */
  readonly bytes: Uint8Array;
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  /** int64 vector inputs that the session fills from the bound symbols. */
  readonly shapeInputs: readonly { readonly name: string; readonly dims: readonly Dim[] }[];
  /** Large constants, by the path that the model names; views, not copies. */
  readonly externalData: readonly { readonly path: string; readonly data: Uint8Array }[];
}

export interface EmitOptions {
  readonly name?: string;
  /** Input name → its values: the input becomes part of the model (frozen weights, which the runtime prepacks). */
  readonly initializers?: ReadonlyMap<string, ConstantData>;
}

const bytesOf = (data: ConstantData) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

/** Collects operators while the rules write; see `Emission`. Own names start with '%'. */
class ModelWriter implements Emission {
  readonly operators: NodeProto[] = [];
  readonly tensors: TensorProto[] = [];
  readonly externalData: { path: string; data: Uint8Array }[] = [];
  readonly inputs = new Map<string, TensorInfo>();
  readonly shapeInputs = new Map<string, readonly Dim[]>();
  readonly #initializers: ReadonlyMap<string, ConstantData>;
  /** Spelled-out operator or constant → its value's name. */
  readonly #known = new Map<string, string>();
  #count = 0;

  constructor(initializers: ReadonlyMap<string, ConstantData>) {
    this.#initializers = initializers;
  }

  node(
    operator: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, OnnxAttribute>> = {},
    { domain = '', results = 1 }: { domain?: string | undefined; results?: number | undefined } = {},
  ): string {
    return this.#once(JSON.stringify([operator, inputs, attributes, domain]), name => {
      const attribute = Object.entries(attributes).map(([key, value]) => attributeProto(key, value));
      const output = Array.from({ length: results }, (_, i) => (i === 0 ? name : `${name}:${i}`));
      this.operators.push(create(NodeProtoSchema, { opType: operator, domain, input: [...inputs], output, attribute }));
    });
  }

  dims(dims: readonly Dim[]): string {
    if (dims.every(dim => typeof dim === 'number')) {
      return this.#constant(BigInt64Array.from(dims, BigInt), 'int64', [dims.length]);
    }
    const name = `%shape(${dims.join(',')})`;
    this.shapeInputs.set(name, dims);
    return name;
  }

  scalar(value: number): string {
    return this.#constant(Float32Array.of(value), 'float32', []);
  }

  data({ op, attributes, shape, dtype }: Node): string {
    if (op === 'constant') return this.#constant(attributes.data as ConstantData, dtype, shape);
    const name = attributes.name as string;
    if (name.startsWith('%')) throw new RangeError(`input "${name}": names that start with % are reserved`);
    const known = this.inputs.get(name);
    if (known && !(sameShape(known.shape, shape) && known.dtype === dtype)) {
      const both = [known, { shape, dtype }].map(each => `${each.dtype} ${showShape(each.shape)}`);
      throw new RangeError(`two inputs are named "${name}": ${both.join(' and ')}`);
    }
    if (known) return name;
    this.inputs.set(name, { name, shape, dtype });
    const values = this.#initializers.get(name);
    if (!values) return name;
    if (dtype !== dtypeOf(values) || sizeOf(shape) !== values.length) {
      throw new RangeError(
        `initializer "${name}": ${values.length} ${dtypeOf(values)} values do not fill ${dtype} ${showShape(shape)}`,
      );
    }
    this.#tensor(name, values, dtype, shape);
    return name;
  }

  #constant(data: ConstantData, dtype: DType, shape: Shape): string {
    const content = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('latin1');
    return this.#once(`${dtype} ${showShape(shape)} ${content}`, name => this.#tensor(name, data, dtype, shape));
  }

  #tensor(name: string, data: ConstantData, dtype: DType, shape: Shape): void {
    const bytes = bytesOf(data);
    const tensor = create(TensorProtoSchema, {
      name,
      dataType: ONNX_TYPE[dtype],
      dims: shape.map(dim => BigInt(dim)),
    });
    if (bytes.length <= EXTERNAL_BYTES) tensor.rawData = bytes.slice();
    else {
      tensor.dataLocation = DataLocation.EXTERNAL;
      tensor.externalData = Object.entries({ location: name, offset: '0', length: `${bytes.length}` }).map(
        ([key, value]) => create(StringStringEntryProtoSchema, { key, value }),
      );
      this.externalData.push({ path: name, data: bytes });
    }
    this.tensors.push(tensor);
  }

  #once(content: string, write: (name: string) => void): string {
    const known = this.#known.get(content);
    if (known) return known;
    const name = `%${this.#count++}`;
    this.#known.set(content, name);
    write(name);
    return name;
  }
}

function attributeProto(name: string, value: OnnxAttribute) {
  if (typeof value === 'number') {
    return create(AttributeProtoSchema, { name, type: AttributeType.INT, i: BigInt(value) });
  }
  if (typeof value === 'string') {
    return create(AttributeProtoSchema, { name, type: AttributeType.STRING, s: new Uint8Array(Buffer.from(value)) });
  }
  if ('float' in value) return create(AttributeProtoSchema, { name, type: AttributeType.FLOAT, f: value.float });
  return create(AttributeProtoSchema, { name, type: AttributeType.INTS, ints: value.map(BigInt) });
}

function valueInfo(name: string, dtype: DType, shape: Shape): ValueInfoProto {
  const dim = shape.map(each =>
    create(TensorShapeProto_DimensionSchema, {
      value: typeof each === 'number' ? { case: 'dimValue', value: BigInt(each) } : { case: 'dimParam', value: each },
    }),
  );
  const value = create(TypeProto_TensorSchema, {
    elemType: ONNX_TYPE[dtype],
    shape: create(TensorShapeProtoSchema, { dim }),
  });
  return create(ValueInfoProtoSchema, {
    name,
    type: create(TypeProtoSchema, { value: { case: 'tensorType', value } }),
  });
}

/**
 * Gives every output its own value with the output's name: the operator that computes it writes there directly, other
 * values (inputs, constants, a second name of one value) are copied.
 */
function nameOutputs(operators: NodeProto[], outputs: readonly (readonly [name: string, value: string])[]): void {
  const computed = new Set(operators.flatMap(operator => operator.output));
  const renamed = new Map<string, string>();
  const copies: NodeProto[] = [];
  for (const [name, value] of outputs) {
    if (computed.has(value) && !renamed.has(value)) renamed.set(value, name);
    else copies.push(create(NodeProtoSchema, { opType: 'Identity', input: [value], output: [name] }));
  }
  operators.push(...copies);
  for (const operator of operators) {
    operator.input = operator.input.map(value => renamed.get(value) ?? value);
    operator.output = operator.output.map(value => renamed.get(value) ?? value);
  }
}

/** Drops operators that no output needs; returns the rest and every value they read. */
function prune(operators: readonly NodeProto[], outputs: readonly string[]): { live: NodeProto[]; read: Set<string> } {
  const read = new Set(outputs);
  const live: NodeProto[] = [];
  for (const operator of [...operators].reverse()) {
    if (!operator.output.some(value => read.has(value))) continue;
    live.unshift(operator);
    for (const value of operator.input) read.add(value);
  }
  return { live, read };
}

/**
 * Operators whose results nobody reads come last, the first made at the very end: the runtime walks back from the last
 * of them first. A weight gradient is then computed as soon as what it needs is there, and lets go of it; in the order
 * of creation all of them would wait for the gradient of the first layer, with every activation kept alive.
 */
function eagerLeaves(operators: readonly NodeProto[]): NodeProto[] {
  const read = new Set(operators.flatMap(operator => operator.input));
  const isLeaf = (operator: NodeProto) => !operator.output.some(value => read.has(value));
  return [...operators.filter(operator => !isLeaf(operator)), ...operators.filter(isLeaf).reverse()];
}

/**
 * Writes the graph behind `outputs` (name → node) as one ONNX model. Equal operators and
 * constants are written once, what no output needs is left out (an input too: feeding it then is harmless).
 */
export function emit(outputs: Readonly<Record<string, Node>>, options: EmitOptions = {}): EmittedModel {
  const { name = 'model', initializers = new Map() } = options;
  const writer = new ModelWriter(initializers);
  const values = new Map<Node, string>();
  for (const node of ancestors(Object.values(outputs))) {
    const inputs = node.inputs.map(each => values.get(each)!);
    values.set(node, primitives[node.op].emit(writer, inputs, node));
  }
  if (values.size === 0) throw new RangeError(`model "${name}" has no outputs`);
  const infos = Object.entries(outputs).map(([output, { shape, dtype }]) => ({ name: output, shape, dtype }));
  for (const { name: output } of infos) {
    if (output.startsWith('%')) throw new RangeError(`output "${output}": names that start with % are reserved`);
    if (writer.inputs.has(output)) throw new RangeError(`"${output}" names both an input and an output`);
  }
  nameOutputs(
    writer.operators,
    Object.entries(outputs).map(([output, node]) => [output, values.get(node)!]),
  );
  const { live, read } = prune(writer.operators, Object.keys(outputs));

  const inputs = [...writer.inputs.values()].filter(each => read.has(each.name) && !initializers.has(each.name));
  const shapeInputs = [...writer.shapeInputs]
    .filter(([each]) => read.has(each))
    .map(([each, dims]) => ({ name: each, dims }));
  const graph = create(GraphProtoSchema, {
    name,
    node: eagerLeaves(live),
    initializer: writer.tensors.filter(each => read.has(each.name)),
    input: [
      ...inputs.map(each => valueInfo(each.name, each.dtype, each.shape)),
      ...shapeInputs.map(each => valueInfo(each.name, 'int64', [each.dims.length])),
    ],
    output: infos.map(each => valueInfo(each.name, each.dtype, each.shape)),
  });
  const model = create(ModelProtoSchema, {
    irVersion: IR_VERSION,
    producerName: 'tokenloop',
    opsetImport: [
      create(OperatorSetIdProtoSchema, { version: OPSET }),
      create(OperatorSetIdProtoSchema, { domain: 'com.microsoft', version: 1n }),
    ],
    graph,
  });
  return {
    name,
    bytes: toBinary(ModelProtoSchema, model),
    inputs,
    outputs: infos,
    shapeInputs,
    externalData: writer.externalData.filter(each => read.has(each.path)),
  };
}
