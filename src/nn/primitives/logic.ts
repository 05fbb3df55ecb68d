import { type DType, scalar } from '../graph.ts';
import { broadcastShapes, sameShape, showShape } from '../shape.ts';
import { elementwise, type Primitive, primitive, requireDType } from './primitive.ts';

function comparison(op: string, operator: string): Primitive {
  return primitive({
    infer: inputs => ({ ...elementwise(op, inputs, 'float32', 'int64', 'int32'), dtype: 'bool' }),
    derivative: 'none',
    emit: (emission, inputs) => emission.node(operator, inputs),
  });
}

function logical(op: string, operator: string): Primitive {
  return primitive({
    infer: inputs => elementwise(op, inputs, 'bool'),
    derivative: 'none',
    emit: (emission, inputs) => emission.node(operator, inputs),
  });
}

/** TensorProto.DataType of the ONNX standard. */
export const ONNX_TYPE: Readonly<Record<DType, number>> = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
};

export const logic = {
  less: comparison('less', 'Less'),
  lessEqual: comparison('lessEqual', 'LessOrEqual'),
  greater: comparison('greater', 'Greater'),
  equal: comparison('equal', 'Equal'),
  and: logical('and', 'And'),
  or: logical('or', 'Or'),
  not: logical('not', 'Not'),

  // Selects, never multiplies: NaN in the branch not taken cannot leak into the value or the gradient.
  where: primitive({
    infer: inputs => {
      const [condition, a, b] = inputs;
      requireDType('where', condition!, 'bool');
      const { dtype } = elementwise('where', [a!, b!], 'float32', 'int64', 'int32');
      return { shape: broadcastShapes('where', ...inputs.map(node => node.shape)), dtype };
    },
    derivative: ({ inputs: [condition, a, b] }, dy, ops) => {
      const zero = scalar(0);
      return [
        undefined,
        ops.sumTo(ops.where(condition!, dy, zero), a!.shape),
        ops.sumTo(ops.where(condition!, zero, dy), b!.shape),
      ];
    },
    emit: (emission, inputs) => emission.node('Where', inputs),
  }),

  // Between integers, booleans and float32; no two types here are both differentiable.
  cast: primitive<{ dtype: DType }>({
    infer: ([x], { dtype }) => ({ shape: x!.shape, dtype }),
    derivative: 'none',
    emit: (emission, inputs, node) => emission.node('Cast', inputs, { to: ONNX_TYPE[node.attributes.dtype] }),
  }),

  stopGradient: primitive({
    infer: ([x]) => ({ shape: x!.shape, dtype: x!.dtype }),
    derivative: 'none',
    emit: (_, [x]) => x!,
  }),

  // The value of one, the gradient to the other.
  straightThrough: primitive({
    infer: ([value, path]) => {
      requireDType('straightThrough', path!, 'float32');
      if (!sameShape(value!.shape, path!.shape)) {
        throw new RangeError(
          `straightThrough: ${showShape(value!.shape)} has the gradient of ${showShape(path!.shape)}`,
        );
      }
      return elementwise('straightThrough', [value!, path!], 'float32');
    },
    derivative: (_, dy) => [undefined, dy],
    emit: (_, [value]) => value!,
  }),
};
