import { rmOptions } from '../config/preferences.ts';
import { lazyRows, type Rows } from '../data/rows.ts';
import type { Critic } from '../engines/contracts.ts';
import { writeRewardStatistics } from '../nn/checkpoint/reward-statistics.ts';
import type { Renderer } from '../text/renderer.ts';
import type { PreferencePair } from '../training/preferences.ts';
import { evaluateRewardModel, trainRewardModel } from '../training/reward-model.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { pairReading } from './pairs.ts';
import { engineSettings, trainOnRows } from './supervised.ts';

type RmContext = CommandContext<typeof rmOptions>;

/** Without held-out pairs the mean and deviation of rewards are those of so many pairs from the beginning of the data. */
const PAIRS_FOR_STATISTICS = 1000;

export const command = defineCommand({
  name: 'rm',
  options: rmOptions,
  details: `Trains a value head on a model, so that the answer people preferred gets the larger reward. The final model is an
AutoModelForSequenceClassification with one label; its config.json also has mean and std of the rewards.`,
  run: context => trainScorer(context, () => openScorer(context)),
});

/** A model with a value head and the text it reads. */
export interface Scorer {
  readonly critic: Critic;
  readonly renderer: Renderer;
}

async function openScorer(context: RmContext): Promise<Scorer> {
  const { onnxCritic } = await import('../engines/onnx/index.ts');
  const { loadRenderer } = await import('../text/chat-renderer.ts');
  const settings = await engineSettings(context);
  return { renderer: await loadRenderer(settings.model), critic: await onnxCritic(settings) };
}

/** The command; `open` makes the engine. */
export function trainScorer(context: RmContext, open: () => Promise<Scorer>): Promise<undefined> {
  const { 'model.loss_type': loss, 'train.batch_size': batchSize } = context.values;
  const marginKey = context.values['model.margin_loss_enable'] ? context.values['data.margin_key'] : undefined;
  // The score is read behind the last token, which takes a place of its own.
  const text = pairReading({ ...context.values, marginKey }, contextLength => contextLength - 1);
  return trainOnRows<PreferencePair>('rm', context, text, async () => {
    const { critic, renderer } = await open();
    return {
      name: 'rm',
      options: rmOptions,
      text: { renderer, contextLength: critic.contextLength },
      train: options => trainRewardModel({ critic, loss, ...options }),
      finish: async (directory, { examples, heldOut }) => {
        const pairs = heldOut ?? beginningOf(examples);
        const { reward_mean: mean, reward_std: std } = await evaluateRewardModel(critic, pairs, { batchSize });
        await critic.export(directory);
        await writeRewardStatistics(directory, { mean, std });
      },
      shows: {
        live: [
          { metric: 'loss', label: 'loss' },
          { metric: 'acc', label: 'accuracy' },
        ],
        results: [{ metric: 'acc', label: 'accuracy' }],
      },
      close: () => critic.close(),
    };
  });
}

function beginningOf(examples: Rows<PreferencePair>): Rows<PreferencePair> {
  return lazyRows(Math.min(examples.length, PAIRS_FOR_STATISTICS), index => examples.at(index) as PreferencePair);
}
