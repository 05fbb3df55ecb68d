import { scalar } from '../graph.ts';
import { type Derivative, elementwise, type Primitive, primitive } from './primitive.ts';

/** Elementwise arithmetic on two broadcast inputs. Integers are allowed; gradients flow through float32 only. */
function binary(op: string, operator: string, derivative: Derivative): Primitive {
  return primitive({
    infer: inputs => elementwise(op, inputs, 'float32', 'int64', 'int32'),
    derivative,
    emit: (emission, inputs) => emission.node(operator, inputs),
  });
}

export const arithmetic = {
  add: binary('add', 'Add', ({ inputs: [a, b] }, dy, ops) => [ops.sumTo(dy, a!.shape), ops.sumTo(dy, b!.shape)]),

  sub: binary('sub', 'Sub', ({ inputs: [a, b] }, dy, ops) => [
    ops.sumTo(dy, a!.shape),
    ops.neg(ops.sumTo(dy, b!.shape)),
  ]),

  mul: binary('mul', 'Mul', ({ inputs: [a, b] }, dy, ops) => [
    ops.sumTo(ops.mul(dy, b!), a!.shape),
    ops.sumTo(ops.mul(dy, a!), b!.shape),
  ]),

  // d(a/b)/db = -(a/b)/b, which reuses the quotient.
  div: binary('div', 'Div', (node, dy, ops) => {
    const [a, b] = node.inputs;
    const da = ops.div(dy, b!);
    return [ops.sumTo(da, a!.shape), ops.neg(ops.sumTo(ops.mul(da, node), b!.shape))];
  }),

  // Where both are equal the gradient goes to a.
  min: binary('min', 'Min', ({ inputs: [a, b] }, dy, ops) => {
    const first = ops.lessEqual(a!, b!);
    const zero = scalar(0);
    return [ops.sumTo(ops.where(first, dy, zero), a!.shape), ops.sumTo(ops.where(first, zero, dy), b!.shape)];
  }),

  max: binary('max', 'Max', ({ inputs: [a, b] }, dy, ops) => {
    const second = ops.greater(b!, a!);
    const zero = scalar(0);
    return [ops.sumTo(ops.where(second, zero, dy), a!.shape), ops.sumTo(ops.where(second, dy, zero), b!.shape)];
  }),
};
