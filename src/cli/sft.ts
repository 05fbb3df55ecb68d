import { sftOptions } from '../config/sft.ts';
import type { PolicyEngine } from '../engines/contracts.ts';
import { type Demonstration, sft } from '../training/sft.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { demonstrationReader, refuseBesidePretraining } from './demonstrations.ts';
import { engineSettings, type Reading, trainOnRows } from './supervised.ts';

type SftContext = CommandContext<typeof sftOptions>;

export const command = defineCommand({
  name: 'sft',
  options: sftOptions,
  details: `Writes a run directory with config.yaml, metrics.jsonl, checkpoints and the final model. A model directory without
weights is started from scratch, with weights drawn by train.seed.`,
  run: context => fineTune(context, () => openPolicy(context)),
});

async function openPolicy(context: SftContext): Promise<PolicyEngine> {
  const { onnxPolicy } = await import('../engines/onnx/index.ts');
  return onnxPolicy(await engineSettings(context));
}

/** The command; `open` makes the engine. */
export function fineTune(context: SftContext, open: () => Promise<PolicyEngine>): Promise<undefined> {
  const { values } = context;
  refuseBesidePretraining(values);
  const text: Reading<Demonstration> = {
    read: ({ renderer, contextLength }) => demonstrationReader(values, renderer, contextLength),
    shown: sequences => sequences.map(sequence => ({ name: '', sequence })),
    marks: 'trained tokens',
  };
  return trainOnRows<Demonstration>('sft', context, text, async () => {
    const policy = await open();
    const { learner, renderer } = policy;
    const shown = [{ metric: 'gpt_loss', label: 'loss' }];
    return {
      name: 'sft',
      options: sftOptions,
      text: { renderer, contextLength: learner.contextLength },
      train: options => sft({ learner, ...options }),
      finish: directory => learner.export(directory),
      shows: { live: shown, results: shown },
      close: () => policy.close(),
    };
  });
}
