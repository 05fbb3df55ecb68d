import { scalar } from '../graph.ts';
import { type Derivative, elementwise, type Primitive, primitive } from './primitive.ts';

function unary(op: string, operator: string, derivative: 'none' | Derivative): Primitive {
  return primitive({
    infer: inputs => elementwise(op, inputs, 'float32'),
    derivative,
    emit: (emission, inputs) => emission.node(operator, inputs),
  });
}

/** Elementwise functions of one float32 input; y below is the node itself. */
export const unaries = {
  neg: unary('neg', 'Neg', (_, dy, ops) => [ops.neg(dy)]),
  exp: unary('exp', 'Exp', (y, dy, ops) => [ops.mul(dy, y)]),
  log: unary('log', 'Log', ({ inputs: [x] }, dy, ops) => [ops.div(dy, x!)]),
  sqrt: unary('sqrt', 'Sqrt', (y, dy, ops) => [ops.div(ops.mul(dy, scalar(0.5)), y)]),
  reciprocal: unary('reciprocal', 'Reciprocal', (y, dy, ops) => [ops.neg(ops.mul(dy, ops.mul(y, y)))]),
  // 0 at 0, as in PyTorch.
  abs: unary('abs', 'Abs', ({ inputs: [x] }, dy, ops) => [ops.mul(dy, ops.sign(x!))]),
  sign: unary('sign', 'Sign', 'none'),
  tanh: unary('tanh', 'Tanh', (y, dy, ops) => [ops.mul(dy, ops.sub(scalar(1), ops.mul(y, y)))]),
  sigmoid: unary('sigmoid', 'Sigmoid', (y, dy, ops) => [ops.mul(dy, ops.mul(y, ops.sub(scalar(1), y)))]),
  // y = x s with s = sigmoid(x), so dy/dx = s + y (1 - s); the sigmoid is written once.
  silu: primitive({
    infer: inputs => elementwise('silu', inputs, 'float32'),
    derivative: (y, dy, ops) => {
      const s = ops.sigmoid(y.inputs[0]!);
      return [ops.mul(dy, ops.add(s, ops.mul(y, ops.sub(scalar(1), s))))];
    },
    emit: (emission, [x]) => emission.node('Mul', [x!, emission.node('Sigmoid', [x!])]),
  }),
  // The runtime evaluates x + log1p(exp(-x)) for x > 0, so nothing overflows.
  softplus: unary('softplus', 'Softplus', ({ inputs: [x] }, dy, ops) => [ops.mul(dy, ops.sigmoid(x!))]),
};
