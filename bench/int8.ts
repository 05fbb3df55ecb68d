import { Model } from '../src/engines/onnx/model.ts';
import { decodeCase, decodeSteps } from './decode-case.ts';
import { type Cell, interleave, Report, type Table, THREADS } from './harness.ts';
import { compareLearning } from './int8-learning.ts';
import { MODELS, withConfig } from './models.ts';
import { publishCase } from './publish-case.ts';

const NAMES = ['25M', '135M'];
const BATCHES = [1, 16, 64];
const PROMPT = 16;
const DTYPES = ['float32', 'int8'] as const;

/**
 * Sampling in int8 beside float32: decode steps, what a publish costs, and reward against time. Arguments: names of
 * models for the first two, `learning` for the last (`learning 5`: that many steps instead of a full run); without any
 * all of it.
 */
export async function run(args: string[]): Promise<void> {
  const report = new Report('int8');
  const learning = args.indexOf('learning');
  const names = learning < 0 ? args : args.slice(0, learning);
  for (const name of args.length === 0 ? NAMES : names) {
    const shape = MODELS[name];
    if (shape === undefined) throw new Error(`no model '${name}'; there are ${Object.keys(MODELS).join(', ')}`);
    const tables = await withConfig(shape, async directory => {
      const model = new Model(directory, 1);
      return [await decoding(name, model), await publishing(name, model)];
    });
    for (const table of tables) report.add(table);
  }
  if (args.length === 0 || learning >= 0) {
    const steps = args[learning + 1];
    for (const table of await compareLearning(steps === undefined ? undefined : Number(steps))) report.add(table);
  }
  // What other pages quote has every model in it.
  if (args.length === 0 || NAMES.every(name => names.includes(name))) report.save();
}

async function decoding(name: string, model: Model): Promise<Table> {
  const rows: Cell[][] = [];
  for (const batch of BATCHES) {
    const steps = decodeSteps(model, batch, PROMPT);
    const cases = DTYPES.map(dtype => decodeCase(model, { batch, prompt: PROMPT, steps }, { dtype }));
    const named = cases.map((each, i) => ({ ...each, name: DTYPES[i]! }));
    const times = await interleave(named, { rounds: 3, seconds: 3 });
    for (const each of cases) await each.close();
    const [float, int8] = DTYPES.map(dtype => times.get(dtype)!) as [number, number];
    rows.push([batch, batch / float, batch / int8, float / int8]);
  }
  return {
    title: `${name}: decoded tokens a second after ${PROMPT}, ${THREADS} threads`,
    columns: ['batch', 'float32', 'int8', '×'],
    rows,
  };
}

/** From the change of the weights to the first token, less a decode step. */
async function publishing(name: string, model: Model): Promise<Table> {
  const cases = DTYPES.map(dtype => publishCase(model, dtype));
  const times = await interleave(cases, { rounds: 3, seconds: 3 });
  for (const each of cases) await each.close();
  const millions = model.weights.length / 1e6;
  return {
    title: `${name}: publishing new weights to the sampler`,
    columns: ['sampled in', 'ms', 'ms per million parameters'],
    rows: cases.map(({ name: dtype }) => [dtype, 1e3 * times.get(dtype)!, (1e3 * times.get(dtype)!) / millions]),
  };
}
