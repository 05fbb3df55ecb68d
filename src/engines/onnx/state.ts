import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SafetensorsFile, writeSafetensors } from '../../nn/checkpoint/safetensors.ts';
import type { FrozenDType } from '../../nn/frozen.ts';
import { latestDirectory, writeDirectoryAtomic } from '../../storage/atomic.ts';
import type { OnnxLearnerCore } from './learner.ts';
import type { Model } from './model.ts';

/** Everything that continuing a training run exactly needs of the engine, as a directory of two files. */

const STATE_FILE = 'state.safetensors';
const META_FILE = 'state.json';

interface Meta {
  readonly version: number;
  readonly optimizerStep: number;
  /** What the moments mean something to; adam where it is not there. */
  readonly optimizer?: 'adam' | 'muon';
  readonly parameters: readonly (readonly [name: string, size: number])[];
  /** What the weights of an adapter mean something with. */
  readonly adapter?: { readonly alpha: number; readonly base: string; readonly frozen?: FrozenDType | undefined };
}

export async function saveState(directory: string, model: Model, learner: OnnxLearnerCore): Promise<void> {
  const { step, firstMoment, secondMoment } = learner.optimizerState();
  const meta: Meta = {
    version: model.version,
    optimizerStep: step,
    optimizer: learner.optimizerName,
    ...belonging(model),
  };
  const { movedReference: reference, average } = model;
  const moments = { first_moment: firstMoment, second_moment: secondMoment };
  const flat = { weights: model.weights, ...moments, ...(reference && { reference }), ...(average && { average }) };
  await writeDirectoryAtomic(directory, async temporary => {
    const tensors = Object.entries(flat).map(([name, data]) => ({ name, shape: [data.length], data }));
    await writeSafetensors(join(temporary, STATE_FILE), tensors);
    await writeFile(join(temporary, META_FILE), `${JSON.stringify(meta, null, 2)}\n`);
  });
}

export async function loadState(directory: string, model: Model, learner: OnnxLearnerCore): Promise<void> {
  const source = latestDirectory(directory);
  const meta = await readMeta(join(source, META_FILE));
  const { parameters, adapter } = belonging(model);
  if (JSON.stringify(meta.parameters) !== JSON.stringify(parameters)) {
    throw new Error(`${source}: the state belongs to a model with other parameters than ${model.directory}`);
  }
  if (adapter && meta.adapter?.base !== adapter.base) {
    throw new Error(`${source}: the state belongs to an adapter of another base than ${model.directory}`);
  }
  if (adapter && meta.adapter?.alpha !== adapter.alpha) {
    throw new Error(
      `${source}: the adapter has the alpha ${meta.adapter?.alpha}, and now it is to be ${adapter.alpha}`,
    );
  }
  const [was, is] = [meta.adapter, adapter].map(each => each?.frozen ?? 'float32');
  if (was !== is) throw new Error(`${source}: the base of the adapter was kept in ${was}, and now it is in ${is}`);
  const { optimizer = 'adam' } = meta;
  if (optimizer !== learner.optimizerName) {
    throw new Error(
      `${source}: the state is of ${optimizer}, and the optimizer is ${learner.optimizerName}; set it back`,
    );
  }
  const file = new SafetensorsFile(join(source, STATE_FILE));
  try {
    const firstMoment = file.readTensor('first_moment');
    const secondMoment = file.readTensor('second_moment');
    file.readTensor('weights', model.weights);
    model.movedReference = file.tensors.has('reference') ? file.readTensor('reference') : undefined;
    model.average = file.tensors.has('average') ? file.readTensor('average') : undefined;
    learner.loadOptimizerState({ step: meta.optimizerStep, firstMoment, secondMoment });
  } finally {
    file.close();
  }
  model.version = meta.version;
}

async function readMeta(path: string): Promise<Meta> {
  const text = await readFile(path, 'utf8');
  try {
    return JSON.parse(text) as Meta;
  } catch (cause) {
    throw new Error(`${path}: not the description of a state (${(cause as Error).message})`, { cause });
  }
}

/** What a state fits only if it is the same. */
function belonging({ layout, adapter, frozen, baseDigest: base }: Model): Pick<Meta, 'parameters' | 'adapter'> {
  return {
    parameters: layout.map(({ name, size }) => [name, size] as const),
    ...(adapter && base !== undefined && { adapter: { alpha: adapter.alpha, base, frozen } }),
  };
}
