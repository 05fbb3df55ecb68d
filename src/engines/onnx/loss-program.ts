import type { Loss, Ops } from '../../algorithms/ops.ts';

/**
 * A loss as plain data. Functions cannot cross a thread boundary; a loss is written over `Ops`, so running it once
 * with operations that record gives a list of instructions that can be sent and replayed over any other `Ops`.
 */

type Instruction =
  | { readonly op: 'logprobs' | 'entropy' | 'values' }
  | { readonly op: 'input'; readonly name: string }
  | { readonly op: 'constant'; readonly value: number }
  | { readonly op: 'clamp'; readonly args: readonly number[]; readonly low: number; readonly high: number }
  | { readonly op: Exclude<keyof Ops<unknown>, 'constant' | 'clamp'>; readonly args: readonly number[] };

export interface LossProgram {
  readonly key: string;
  readonly inputs: readonly string[];
  readonly entropy: boolean;
  readonly values: boolean;
  readonly instructions: readonly Instruction[];
  readonly loss: number;
  readonly metrics: Readonly<Record<string, number>>;
}

export function record(loss: Loss): LossProgram {
  const instructions: Instruction[] = [];
  const push = (instruction: Instruction): number => instructions.push(instruction) - 1;
  const unary = (
    op: 'neg' | 'exp' | 'log' | 'abs' | 'softplus' | 'sigmoid' | 'stopGradient' | 'sum' | 'sequenceSum',
  ) => {
    return (a: number) => push({ op, args: [a] });
  };
  const binary = (op: 'add' | 'sub' | 'mul' | 'div' | 'min' | 'max' | 'less') => {
    return (a: number, b: number) => push({ op, args: [a, b] });
  };
  const ops: Ops<number> = {
    constant: value => push({ op: 'constant', value }),
    add: binary('add'),
    sub: binary('sub'),
    mul: binary('mul'),
    div: binary('div'),
    min: binary('min'),
    max: binary('max'),
    less: binary('less'),
    neg: unary('neg'),
    exp: unary('exp'),
    log: unary('log'),
    abs: unary('abs'),
    softplus: unary('softplus'),
    sigmoid: unary('sigmoid'),
    stopGradient: unary('stopGradient'),
    sum: unary('sum'),
    sequenceSum: unary('sequenceSum'),
    clamp: (a, low, high) => push({ op: 'clamp', args: [a], low, high }),
    where: (condition, a, b) => push({ op: 'where', args: [condition, a, b] }),
  };
  const logprobs = push({ op: 'logprobs' });
  const inputs = Object.fromEntries(loss.inputs.map(name => [name, push({ op: 'input', name })]));
  const { key, inputs: names, entropy, values = false } = loss;
  const context = {
    logprobs,
    inputs,
    ...(entropy && { entropy: push({ op: 'entropy' }) }),
    ...(values && { values: push({ op: 'values' }) }),
  };
  return { key, inputs: names, entropy, values, instructions, ...loss.build(ops, context) };
}

export interface Replayed<T> {
  readonly loss: T;
  readonly metrics: Readonly<Record<string, T>>;
}

/** What a recorded loss is run on: values that the program does not read need not be there. */
export interface ReplayContext<T> {
  readonly logprobs?: T;
  readonly entropy?: T;
  readonly values?: T;
  readonly input: (name: string) => T;
}

/** Runs a recorded loss over `ops`, without what nothing reads. */
export function replay<T>(program: LossProgram, ops: Ops<T>, context: ReplayContext<T>): Replayed<T> {
  const read = new Set([program.loss, ...Object.values(program.metrics)]);
  for (const instruction of program.instructions)
    if ('args' in instruction) for (const i of instruction.args) read.add(i);
  const values: T[] = [];
  for (const [i, instruction] of program.instructions.entries()) {
    if (read.has(i)) values[i] = evaluate(instruction, values);
  }
  const metrics = Object.fromEntries(Object.entries(program.metrics).map(([name, index]) => [name, values[index]!]));
  return { loss: values[program.loss]!, metrics };

  function evaluate(instruction: Instruction, done: readonly T[]): T {
    switch (instruction.op) {
      case 'logprobs':
      case 'entropy':
      case 'values': {
        const value = context[instruction.op];
        if (value === undefined)
          throw new Error(`the loss ${program.key} reads '${instruction.op}', which is not here`);
        return value;
      }
      case 'input':
        return context.input(instruction.name);
      case 'constant':
        return ops.constant(instruction.value);
      case 'clamp':
        return ops.clamp(done[instruction.args[0]!]!, instruction.low, instruction.high);
      default: {
        const call = ops[instruction.op] as (...args: T[]) => T;
        return call.apply(
          ops,
          instruction.args.map(index => done[index]!),
        );
      }
    }
  }
}
