import { Model } from '../src/engines/onnx/model.ts';
import { Session } from '../src/engines/onnx/session.ts';
import { benchSampler } from './decode-case.ts';
import { requests } from './workload.ts';

/** One start, for start.ts: `start-case.ts <checkpoint directory>` prints milliseconds by what they went into. */

const PROMPT = 64;

const times = { runtime: 0, 'read weights': 0, 'make sessions': 0, prompt: 0, 'first token': 0 };
type Phase = keyof typeof times;

async function timed<T>(phase: Phase, work: () => T | Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await work();
  times[phase] += performance.now() - start;
  return result;
}

// What the sampler does inside one step is seen from outside of it.
const create = Session.create.bind(Session);
Session.create = (...args) => timed('make sessions', () => create(...args));
const run = Session.prototype.run;
Session.prototype.run = function (feeds, symbols, options) {
  return timed(symbols?.C === undefined ? 'first token' : 'prompt', () => run.call(this, feeds, symbols, options));
};

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: start-case.ts <checkpoint directory>');
const begin = performance.now();
await timed('runtime', () => import('onnxruntime-node'));
const model = await timed('read weights', () => new Model(directory, undefined));
const sampler = benchSampler(model);
sampler.submit(requests(1, PROMPT, 2, model.config.vocabSize));
await sampler.step();
const total = performance.now() - begin;
const known = Object.values(times).reduce((sum, ms) => sum + ms, 0);
console.log(JSON.stringify({ ...times, 'graphs and other': total - known, total }));
await sampler.close();
