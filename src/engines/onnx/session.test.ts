import { afterEach, describe, expect, it, vi } from 'vitest';
import { floats, ints, wave } from '../../../tests/support/graph.ts';
import { gradients } from '../../nn/derivative.ts';
import { input, type Node, scalar } from '../../nn/graph.ts';
import { type EmitOptions, emit } from '../../nn/onnx.ts';
import * as ops from '../../nn/ops.ts';
import { created, Session } from './session.ts';

const open: Session[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(session => session.release()));
});
async function session(outputs: Readonly<Record<string, Node>>, options: EmitOptions & { threads?: number } = {}) {
  const { threads = 2, ...emission } = options;
  const created = await Session.create(emit(outputs, { name: 'test', ...emission }), { threads });
  open.push(created);
  return created;
}

describe('a session', () => {
  it('runs any values of its symbols, also of runs in flight together', async () => {
    const x = input('x', ['B', 'T']);
    // The reshape needs a shape input: two symbols change places.
    const y = ops.reshape(ops.mul(x, scalar(2)), ['T', 1, 'B']);
    const running = await session({ y, sum: ops.reduceSum(ops.mul(y, ops.full(1, ['T', 1, 'B']))), mean: ops.mean(x) });
    const sizes = [
      [2, 3],
      [5, 1],
      [1, 7],
      [2, 3],
    ];
    const results = await Promise.all(sizes.map(([B, T]) => running.run({ x: wave(B! * T!) }, { B: B!, T: T! })));
    for (const [i, [B, T]] of sizes.entries()) {
      const values = wave(B! * T!);
      expect(results[i]!.y).toEqual(values.map(value => 2 * value));
      const total = values.reduce((a, b) => a + b, 0);
      expect(results[i]!.sum![0]).toBeCloseTo(2 * total, 5);
      expect(results[i]!.mean![0]).toBeCloseTo(total / values.length, 6);
    }
  });

  it('reads and writes views into flat buffers in place', async () => {
    const [w, x] = [input('w', [2, 2]), input('x', ['N', 2])];
    const running = await session({ y: ops.linear(x, w), dw: gradients(ops.reduceSum(ops.linear(x, w)), [w])[0]! });
    const flat = floats(9, 1, 2, 3, 4, 9);
    const gradient = new Float32Array(6);
    const feeds = { w: flat.subarray(1, 5), x: floats(1, 10) };
    const outputs = { dw: gradient.subarray(1, 5) };
    const results = await running.run(feeds, { N: 1 }, { outputs });
    expect(results.y).toEqual(floats(21, 43));
    expect(results.dw).toBe(outputs.dw);
    expect(gradient).toEqual(floats(0, 1, 10, 1, 10, 0));
    flat[1] = 2;
    expect((await running.run(feeds, { N: 1 })).y).toEqual(floats(22, 43));
  });

  it('returns only what is asked for', async () => {
    const x = input('x', [2]);
    const running = await session({ a: ops.neg(x), b: ops.exp(x) });
    expect(Object.keys(await running.run({ x: floats(1, 2) }, {}, { fetch: ['b'] }))).toEqual(['b']);
  });

  it('carries integers and booleans both ways', async () => {
    const [i, j, b] = [input('i', ['N'], 'int64'), input('j', ['N'], 'int32'), input('b', ['N'], 'bool')];
    const running = await session({ i2: ops.add(i, i), j2: ops.add(j, j), nb: ops.not(b) });
    const results = await running.run({ i: ints(1, -2), j: Int32Array.of(3, 4), b: Uint8Array.of(0, 1) }, { N: 2 });
    expect(results).toEqual({ i2: ints(2, -4), j2: Int32Array.of(6, 8), nb: Uint8Array.of(1, 0) });
  });

  it('holds initializers, which later changes of the array do not reach', async () => {
    // Small integers, whose products add up exactly in any order: prepacked weights are added in another one.
    const whole = (size: number) => wave(size).map(value => Math.round(4 * value));
    const weights = whole(300 * 200 + 1).subarray(1);
    const [x, w] = [input('x', ['N', 200]), input('w', [300, 200])];
    const y = ops.linear(x, w);
    const frozen = await session({ y }, { initializers: new Map([['w', weights]]) });
    const fed = await session({ y });
    const { y: expected } = await fed.run({ x: whole(400), w: weights }, { N: 2 });
    weights.fill(0);
    expect((await frozen.run({ x: whole(400) }, { N: 2 })).y).toEqual(expected);
  });

  it('names what does not fit', async () => {
    const x = input('x', ['B', 2]);
    const running = await session({ y: ops.reshape(ops.neg(x), [2, 'B']) });
    const run = (...args: Parameters<Session['run']>) => running.run(...args);
    const ok = { x: floats(1, 2, 3, 4) };
    await expect(run({}, { B: 2 })).rejects.toThrow('model "test": input "x" float32 [B,2] was not given');
    await expect(run(ok, { B: 3 })).rejects.toThrow('input "x" float32 [B,2] needs 6 values ([3,2]), got 4');
    await expect(run({ x: ints(1, 2) }, { B: 1 })).rejects.toThrow('needs a Float32Array, got a BigInt64Array');
    await expect(run(ok, {})).rejects.toThrow('input "x" float32 [B,2]: symbol B has no value (bound: none)');
    await expect(run(ok, { B: 0 })).rejects.toThrow('model "test": symbol B must be a positive integer, got 0');
    await expect(run(ok, { B: 2 }, { fetch: ['z'] })).rejects.toThrow('model "test" has no output "z", it has: y');
    await expect(run(ok, { B: 2 }, { outputs: { y: floats(1) } })).rejects.toThrow(
      'output "y" float32 [2,B] needs 4 values ([2,2]), got 1',
    );
    await expect(Session.create(running.model, { threads: 0 })).rejects.toThrow('positive integer, got 0');
    await expect(Session.create({ ...running.model, bytes: new Uint8Array(8) })).rejects.toThrow(
      'the runtime refused model "test"',
    );
  });

  it('wraps errors of the runtime with the model and the fed shapes', async () => {
    const running = await session({ y: ops.gatherRows(input('x', ['R', 2]), input('i', ['P'], 'int64')) });
    await expect(running.run({ x: wave(4), i: ints(5) }, { R: 2, P: 1 })).rejects.toThrow(
      /model "test" failed: .*\(fed x float32 \[2,2\], i int64 \[1\]\)$/s,
    );
    expect((await running.run({ x: floats(1, 2, 3, 4), i: ints(1) }, { R: 2, P: 1 })).y).toEqual(floats(3, 4));
  });

  it('refuses to run once released, and may be released twice', async () => {
    const running = await session({ y: ops.neg(input('x', [1])) });
    await running.release();
    await running.release();
    await expect(running.run({ x: floats(1) })).rejects.toThrow('model "test" was released and cannot run');
  });
});

describe('without the runtime', () => {
  afterEach(() => {
    vi.doUnmock('onnxruntime-node');
    vi.resetModules();
  });

  it('only creating a session fails, and the message says what to do', async () => {
    vi.resetModules();
    vi.doMock('onnxruntime-node', () => {
      throw new Error('no such library');
    });
    const fresh = await import('./session.ts');
    await expect(fresh.Session.create(emit({ y: scalar(1) }))).rejects.toThrow(
      /^the embedded engine needs onnxruntime-node, which cannot be loaded on \S+: .*ONNXRUNTIME_NODE_INSTALL=skip npm install$/s,
    );
  });
});

describe('gradients', () => {
  it('are bit-identical between repetitions and between one and two threads', async () => {
    // An embedding whose 64 rows are hit by 4096 updates, normalised, projected on itself, softmax loss: every kind of
    // reduction that threads could split, and the scatter that races when written the wrong way.
    const [embedding, w] = [input('embedding', [64, 48]), input('w', [48, 48])];
    const [tokens, targets] = [input('tokens', ['N'], 'int64'), input('targets', ['N'], 'int64')];
    const x = ops.gatherRows(embedding, tokens);
    const hidden = ops.silu(ops.linear(ops.rmsNorm(x, ops.full(1, [48]), 1e-5), w));
    const logits = ops.linear(ops.add(x, hidden), embedding);
    const loss = ops.neg(ops.mean(ops.takeLast(ops.logSoftmax(logits), targets)));
    const [dEmbedding, dw] = gradients(loss, [embedding, w]);
    const N = 4096;
    const feeds = {
      embedding: wave(64 * 48),
      w: wave(48 * 48, 1),
      tokens: BigInt64Array.from({ length: N }, (_, i) => BigInt((i * i + 3 * i) % 64)),
      targets: BigInt64Array.from({ length: N }, (_, i) => BigInt((i * 7) % 64)),
    };
    let expected: unknown;
    for (const threads of [1, 2]) {
      const running = await session({ loss, dEmbedding: dEmbedding!, dw: dw! }, { threads });
      for (let repetition = 0; repetition < 15; repetition++) {
        const results = await running.run(feeds, { N });
        expected ??= results;
        expect(results).toEqual(expected);
      }
    }
  });

  it('lose no update where threads meet at one row', async () => {
    // The shape at which ScatterND with reduction loses updates in one run of five.
    const [rows, P, d] = [64, 3072, 128];
    const sum = ops.scatterAddRows(input('index', ['P'], 'int64'), input('updates', ['P', d]), rows);
    const index = BigInt64Array.from({ length: P }, (_, p) => BigInt((p * p) % rows));
    const updates = wave(P * d).map(value => Math.round(4 * value));
    const expected = new Float32Array(rows * d);
    for (const [i, update] of updates.entries()) expected[Number(index[Math.floor(i / d)]) * d + (i % d)]! += update;
    const running = await session({ sum });
    for (let repetition = 0; repetition < 60; repetition++) {
      expect((await running.run({ index, updates }, { P })).sum).toEqual(expected);
    }
  });
});

it('gives what could be made of several, without those that were refused or never asked for', async () => {
  expect(await created([Promise.resolve(1), Promise.reject(new Error('refused')), undefined])).toEqual([1]);
});
