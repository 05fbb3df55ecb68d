import { sftOptions } from '../config/sft.ts';
import type { PolicyEngine } from '../engines/contracts.ts';
import { exampleSequences, rowToExample } from '../training/conversations.ts';
import { type Demonstration, sft } from '../training/sft.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { engineSettings, trainOnRows } from './supervised.ts';

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
  const columns = {
    inputKey: values['data.input_key'],
    outputKey: values['data.output_key'],
    inputTemplate: values['data.input_template'],
    applyChatTemplate: values['data.apply_chat_template'],
  };
  return trainOnRows<Demonstration>('sft', context, async () => {
    const policy = await open();
    const { learner, renderer } = policy;
    const shown = [{ metric: 'gpt_loss', label: 'loss' }];
    return {
      name: 'sft',
      options: sftOptions,
      read: row => {
        const sequences = exampleSequences(rowToExample(row, columns), renderer);
        const length = Math.max(...sequences.map(({ tokens }) => tokens.length));
        if (length <= learner.contextLength) return sequences;
        throw new Error(`the example has ${length} tokens and the model sees ${learner.contextLength}; shorten it`);
      },
      train: options => sft({ learner, ...options }),
      finish: directory => learner.export(directory),
      shows: { live: shown, results: shown },
      close: () => policy.close(),
    };
  });
}
