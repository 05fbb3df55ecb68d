import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { type GraphProto, ModelProtoSchema } from 'onnx-buf';
import { describe, expect, it } from 'vitest';
import { evaluate, floats, wave } from '../../tests/support/graph.ts';
import { constant, input, type Node, scalar } from './graph.ts';
import { type EmitOptions, emit } from './onnx.ts';
import * as ops from './ops.ts';
import { reshapeTarget } from './primitives/layout.ts';
import { evalDim } from './shape.ts';

function graphOf(outputs: Readonly<Record<string, Node>>, options?: EmitOptions): GraphProto {
  return fromBinary(ModelProtoSchema, emit(outputs, options).bytes).graph!;
}
const operators = (graph: GraphProto) => graph.node.map(each => each.opType);

describe('emit', () => {
  it('writes equal operators and constants once', () => {
    const x = input('x', ['N', 4]);
    const twice = () => ops.exp(ops.add(x, constant(floats(1, 2, 3, 4), [4])));
    const graph = graphOf({ y: ops.mul(twice(), twice()) });
    expect(operators(graph)).toEqual(['Add', 'Exp', 'Mul']);
    expect(graph.initializer.length).toBe(1);
  });

  it('leaves out what no output needs', () => {
    const index = (name: string, ...shape: string[]) => input(name, shape, 'int64');
    const model = emit({
      y: ops.spread(input('x', [2, 'N', 4]), {
        places: index('places', 'M'),
        own: index('own', 'N'),
        extra: index('extra', 'E', 'R'),
        line: index('line', 'N'),
        repeated: input('repeated', ['N', 1]),
      }),
    });
    expect(model.inputs.map(each => each.name)).toEqual(['x', 'places']);
  });

  it('gives outputs their names, also where one value has several or is an input', async () => {
    const x = input('x', [2]);
    const y = ops.neg(x);
    const outputs = { first: y, second: y, same: x, fixed: scalar(3), later: ops.exp(y) };
    expect(operators(graphOf(outputs)).filter(each => each !== 'Identity')).toEqual(['Neg', 'Exp']);
    const results = await evaluate(outputs, { x: floats(0, 1) });
    expect(results.first).toEqual(floats(-0, -1));
    expect(results.second).toEqual(floats(-0, -1));
    expect(results.same).toEqual(floats(0, 1));
    expect(results.fixed).toEqual(floats(3));
    expect(results.later![1]).toBeCloseTo(Math.exp(-1), 6);
  });

  it('needs shape inputs only where 0, 1 and -1 cannot say it', () => {
    const x = input('x', ['B', 'T', 8]);
    const shapes = (node: Node) => emit({ y: node }).shapeInputs.map(each => each.dims);
    expect(shapes(ops.reshape(x, ['B', 'T', 2, 4]))).toEqual([]);
    expect(shapes(ops.reshape(x, ['B*T', 8]))).toEqual([]);
    expect(shapes(ops.reshape(x, ['8*T', 'B']))).toEqual([['8*T', 'B']]);
    expect(shapes(ops.expand(ops.slice(x, 2, 0, 1), ['B', 'T', 4]))).toEqual([]);
    expect(shapes(ops.expand(scalar(1), ['B', 4]))).toEqual([['B', 4]]);
    expect(shapes(ops.add(x, ops.full(2, ['B', 'T', 8])))).toEqual([]);
  });

  it('resolves reshape targets to the shape that was meant', () => {
    const dim = fc.constantFrom<(number | string)[]>(2, 3, 'A', 'B', '2*A');
    const bindings = { A: 5, B: 7 };
    fc.assert(
      fc.property(fc.array(dim, { maxLength: 5 }), fc.integer({ min: 0, max: 4 }), (from, turn) => {
        const at = Math.min(turn, from.length);
        const to = [...from.slice(at), ...from.slice(0, at)];
        const sizes = from.map(each => evalDim(each, bindings));
        const copied = reshapeTarget(from, to).map((each, i) => (each === 0 ? sizes[i]! : evalDim(each, bindings)));
        const known = copied.filter(each => each !== -1).reduce((a, b) => a * b, 1);
        const total = sizes.reduce((a, b) => a * b, 1);
        expect(copied.map(each => (each === -1 ? total / known : each))).toEqual(
          to.map(each => evalDim(each, bindings)),
        );
      }),
    );
  });

  it('stores initializers in the model, large ones beside it', async () => {
    const [w, v] = [input('w', [256, 128]), input('v', [128])];
    const buffer = wave(256 * 128 + 128 + 3);
    const initializers = new Map([
      ['w', buffer.subarray(3, 3 + 256 * 128)],
      ['v', buffer.subarray(3 + 256 * 128)],
    ]);
    const model = emit({ y: ops.linear(input('x', ['N', 128]), w), z: v }, { initializers });
    expect(model.inputs.map(each => each.name)).toEqual(['x']);
    expect(model.externalData.map(each => [each.path, each.data.length])).toEqual([['w', 4 * 256 * 128]]);
    expect(model.externalData[0]!.data.buffer).toBe(buffer.buffer);
    expect(model.bytes.length).toBeLessThan(2000);
  });

  it('refuses names and initializers that do not fit', () => {
    const x = input('x', [2]);
    expect(() => emit({ x: ops.neg(x) })).toThrow('"x" names both an input and an output');
    expect(() => emit({ y: input('%1', [2]) })).toThrow('input "%1": names that start with % are reserved');
    expect(() => emit({ '%0': ops.exp(ops.neg(x)) })).toThrow('output "%0": names that start with % are reserved');
    expect(() => emit({ y: ops.concat([x, input('x', [3])], 0) })).toThrow(
      'two inputs are named "x": float32 [2] and float32 [3]',
    );
    expect(() => emit({ y: x }, { initializers: new Map([['x', floats(1)]]) })).toThrow(
      'initializer "x": 1 float32 values do not fill float32 [2]',
    );
    expect(() => emit({})).toThrow('model "model" has no outputs');
    expect(graphOf({ y: ops.add(x, input('x', [2])) }).input.length).toBe(1);
  });
});
