import { dpoOptions } from '../config/preferences.ts';
import type { Learner, PolicyEngine } from '../engines/contracts.ts';
import { dpo } from '../training/dpo.ts';
import type { PreferencePair } from '../training/preferences.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { locateModel } from './model.ts';
import { pairReading } from './pairs.ts';
import { engineSettings, trainOnRows } from './supervised.ts';

type DpoContext = CommandContext<typeof dpoOptions>;

export const command = defineCommand({
  name: 'dpo',
  options: dpoOptions,
  details: `Trains a policy on pairs of answers, without a reward model: DPO, cDPO (model.label_smoothing) or IPO
(model.ipo_enable). The reference is the policy before training, or the model of ref.model_name_or_path.`,
  run: context => preferPairs(context, () => openPolicies(context)),
});

/** The policy, and the reference where it is a model of its own. */
export interface DpoModels {
  readonly policy: PolicyEngine;
  readonly reference?: Pick<Learner, 'forward' | 'close'> | undefined;
}

async function openPolicies(context: DpoContext): Promise<DpoModels> {
  const { onnxPolicy } = await import('../engines/onnx/index.ts');
  const settings = await engineSettings(context);
  const policy = await onnxPolicy(settings);
  const name = context.values['ref.model_name_or_path'];
  if (name === undefined) return { policy };
  try {
    const model = await locateModel(name, undefined, context);
    const { learner: reference } = await onnxPolicy({ ...settings, lora: undefined, model, training: false });
    return { policy, reference };
  } catch (error) {
    await policy.close();
    throw error;
  }
}

/** The command; `open` makes the engines. */
export function preferPairs(context: DpoContext, open: () => Promise<DpoModels>): Promise<undefined> {
  const { values } = context;
  const loss = {
    beta: values['model.beta'],
    labelSmoothing: values['model.label_smoothing'],
    ipo: values['model.ipo_enable'],
    nllCoefficient: values['model.nll_loss_coef'],
  };
  const lengthNormalized = values['model.length_norm_enable'];
  const text = pairReading(values, contextLength => contextLength);
  return trainOnRows<PreferencePair>('dpo', context, text, async () => {
    const { policy, reference } = await open();
    const { learner, renderer } = policy;
    return {
      name: 'dpo',
      options: dpoOptions,
      text: { renderer, contextLength: learner.contextLength },
      train: options => dpo({ learner, reference, loss, lengthNormalized, ...options }),
      finish: directory => learner.export(directory),
      shows: {
        live: [
          { metric: 'loss', label: 'loss' },
          { metric: 'acc', label: 'accuracy' },
        ],
        results: [{ metric: 'acc', label: 'accuracy' }],
      },
      close: async () => {
        await Promise.all([policy.close(), reference?.close()]);
      },
    };
  });
}
