import { dataCommandOptions } from '../config/data.ts';
import { checkRoom, promptTokens } from '../rollout/prompt-room.ts';
import { DEFAULT_ROW_OPTIONS, rowToTask } from '../rollout/tasks.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { demonstrationReader, refuseBesidePretraining } from './demonstrations.ts';
import type { ShownPart } from './dry-run.ts';
import { pairReading } from './pairs.ts';
import { dryRun, mixingOf, type Reading } from './supervised.ts';

type DataContext = CommandContext<typeof dataCommandOptions>;
type DataValues = DataContext['values'];

export const command = defineCommand({
  name: 'data',
  options: dataCommandOptions,
  details: `Reads a dataset as rl, sft, rm or dpo would and says what is in it: examples, tokens, lengths, rows that cannot be
used. Only the tokenizer and config.json of the model are read.`,
  run: inspect,
});

async function inspect(context: DataContext): Promise<undefined> {
  const { values } = context;
  return dryRun(readingOf(values), mixingOf(values), context, values.dry_run ? undefined : 0);
}

function readingOf(values: DataValues): Reading<readonly ShownPart[]> {
  switch (values['data.kind']) {
    case 'tasks':
      return { read: taskReader(values), shown: parts => parts };
    case 'demonstrations':
      refuseBesidePretraining(values);
      return {
        read: ({ renderer, contextLength }) => {
          const read = demonstrationReader(values, renderer, contextLength);
          return row => read(row).map(sequence => ({ name: '', sequence }));
        },
        shown: parts => parts,
        marks: 'trained tokens',
      };
    case 'pairs': {
      const { read, shown, marks } = pairReading(values, contextLength => contextLength);
      return {
        read: text => {
          const pairOf = read(text);
          return row => shown(pairOf(row));
        },
        shown: parts => parts,
        ...(marks && { marks }),
      };
    }
  }
}

/** Prompts as a single-turn agent feeds them; nothing of them is an answer. */
function taskReader(values: DataValues): Reading<readonly ShownPart[]>['read'] {
  const columns = {
    ...DEFAULT_ROW_OPTIONS,
    inputKey: values['data.input_key'],
    labelKey: values['data.label_key'] ?? null,
    inputTemplate: values['data.input_template'] ?? null,
    applyChatTemplate: values['data.apply_chat_template'],
  };
  return room => row => {
    const task = rowToTask(row, columns);
    checkRoom(task, room);
    const tokens = promptTokens(task, room.renderer);
    const name = values['data.label_key'] === undefined ? 'prompt' : `prompt, label ${JSON.stringify(task.label)}`;
    return [{ name, sequence: { tokens, predict: new Uint8Array(tokens.length) } }];
  };
}
