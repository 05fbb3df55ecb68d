import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError } from '../config/error.ts';
import type { evaluationOptions } from '../config/eval.ts';
import type { PolicyEngine } from '../engines/contracts.ts';
import { endpointSampler } from '../engines/endpoint/sampler.ts';
import { transcriptRenderer } from '../engines/endpoint/transcript.ts';
import type { OnnxPolicyOptions } from '../engines/onnx/index.ts';
import { adapterOptions, loraFromOptions, type loraOptions } from '../engines/onnx/options.ts';
import type { Values } from '../options/option.ts';
import { findDamage } from '../storage/manifest.ts';
import { readTrainerState } from '../training/checkpoint.ts';
import type { CommandContext } from './command.ts';
import { adapterOf, locateModel } from './model.ts';

type EvalContext = CommandContext<typeof evaluationOptions>;

/** Whom an evaluation is of, and how to close it. */
export interface Evaluated extends Pick<PolicyEngine, 'sampler' | 'renderer' | 'close'> {
  readonly name: string;
}

/** The model, the checkpoint of a run or the service that the options name; `engine` is for the embedded one. */
export async function openEvaluated(context: EvalContext, engine: Partial<OnnxPolicyOptions> = {}): Promise<Evaluated> {
  const { 'model.model_name_or_path': model, 'eval.endpoint': endpoint, 'eval.weights': weights } = context.values;
  if ((model === undefined) === (endpoint === undefined)) {
    throw new ConfigError(['exactly one of model.model_name_or_path and eval.endpoint says whom to evaluate']);
  }
  if (endpoint !== undefined) {
    refuseAdapter(context, 'a service has the adapter that it serves');
    return openEndpoint(endpoint, context);
  }
  const directory = resolve(context.cwd, model!);
  if (existsSync(join(directory, 'trainer.json'))) {
    refuseAdapter(context, 'a checkpoint of a run has the adapter and the base of its run');
    return openCheckpoint(directory, context, engine);
  }
  if (weights === 'average') {
    throw new ConfigError([
      'eval.weights average is for checkpoints of runs; the averaged model is one of its own (model_ema)',
    ]);
  }
  const { engineFromOptions, onnxPolicy } = await import('../engines/onnx/index.ts');
  const located = await locateModel(model!, context.values['model.model_revision'], context);
  const lora = adapterOf(context.values, context.cwd);
  const policy = await onnxPolicy({
    ...engineFromOptions(context.values),
    ...engine,
    model: located,
    lora,
    training: false,
  });
  return { ...policy, name: model! };
}

/** @throws ConfigError for options of an adapter, which would have no effect */
function refuseAdapter({ values }: EvalContext, because: string): void {
  const given = (Object.keys(adapterOptions) as (keyof typeof adapterOptions)[]).filter(name => values[name]);
  if (given.length > 0)
    throw new ConfigError([`${given.join(' and ')} would have no effect: ${because}; leave it out`]);
}

/** The policy as it was when the checkpoint was written: the model that the run started from, with its weights. */
async function openCheckpoint(
  directory: string,
  context: EvalContext,
  engine: Partial<OnnxPolicyOptions>,
): Promise<Evaluated> {
  const damage = await findDamage(directory);
  if (damage !== undefined) throw new ConfigError([`the checkpoint ${directory} is damaged: ${damage}`]);
  const { config = {} } = readTrainerState(directory);
  const source = config['actor.model_name_or_path'] ?? config['model.model_name_or_path'];
  if (typeof source !== 'string') {
    throw new ConfigError([
      `${directory} does not say which model it is of; evaluate the model directory of the run instead`,
    ]);
  }
  const revision = (config['actor.model_revision'] ?? config['model.model_revision']) as string | undefined;
  const { engineFromOptions, onnxPolicy } = await import('../engines/onnx/index.ts');
  const chosen = loraFromOptions(config as Values<typeof loraOptions>, Number(config['train.seed'] ?? 0));
  const lora = chosen && 'adapter' in chosen ? { ...chosen, adapter: resolve(context.cwd, chosen.adapter) } : chosen;
  const policy = await onnxPolicy({
    ...engineFromOptions(context.values),
    ...engine,
    model: await locateModel(source, revision, context),
    lora,
    initSeed: Number(config['train.seed'] ?? 0),
  });
  try {
    await policy.learner.load(join(directory, 'learner'));
    const isAverage = context.values['eval.weights'] === 'average';
    if (isAverage) {
      if (config['train.enable_ema'] !== true)
        throw new ConfigError([`${directory} holds no average: train.enable_ema was off`]);
      await policy.learner.average?.swap();
    }
    await policy.sampler.publish(policy.learner);
    return { ...policy, name: isAverage ? `${directory} (average)` : directory };
  } catch (error) {
    await policy.close();
    throw error;
  }
}

function openEndpoint(url: string, { values, env }: EvalContext): Evaluated {
  const { 'eval.endpoint_model': model, 'eval.endpoint_key_env': variable } = values;
  if (model === undefined)
    throw new ConfigError(['eval.endpoint needs eval.endpoint_model, the name of the served model']);
  if (!URL.canParse(url))
    throw new ConfigError([`eval.endpoint ${url} is no URL; give one as http://localhost:8000/v1`]);
  const key = env?.[variable];
  return {
    name: `${model} at ${url}`,
    sampler: endpointSampler({ url, model, key }),
    renderer: transcriptRenderer(),
    close: async () => undefined,
  };
}
