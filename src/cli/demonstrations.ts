import { ConfigError } from '../config/error.ts';
import type { demonstrationOptions } from '../config/sft.ts';
import { columnsOf, preview, requiredColumn } from '../data/columns.ts';
import type { Values } from '../options/option.ts';
import type { Renderer } from '../text/renderer.ts';
import { exampleSequences, rowToExample, textSequences } from '../training/conversations.ts';
import type { Demonstration } from '../training/sft.ts';

type DemonstrationColumns = Values<typeof demonstrationOptions> & {
  readonly 'data.input_template'?: string | undefined;
  readonly 'data.apply_chat_template': boolean;
};

/** Makes a demonstration of a row. One that is longer than `room` tokens cannot be used; plain text is cut. */
export function demonstrationReader(
  values: DemonstrationColumns,
  renderer: Renderer,
  room: number,
): (row: unknown) => Demonstration {
  const inputKey = values['data.input_key'];
  if (values['model.pretrain_mode_enable']) {
    return row => {
      const text = requiredColumn(columnsOf(row), inputKey, 'data.input_key');
      if (typeof text === 'string' && text !== '') return textSequences(text, renderer, room);
      throw new Error(`column "${inputKey}" (data.input_key) must hold text, got ${preview(text)}`);
    };
  }
  const columns = {
    inputKey,
    outputKey: values['data.output_key'],
    inputTemplate: values['data.input_template'],
    applyChatTemplate: values['data.apply_chat_template'],
  };
  return row => {
    const sequences = exampleSequences(rowToExample(row, columns), renderer);
    const longest = sequences.reduce((a, b) => (b.tokens.length > a.tokens.length ? b : a));
    const { length } = longest.tokens;
    if (length <= room) return sequences;
    const prompt = longest.predict.indexOf(1);
    const noRoom = prompt >= room ? ', and its prompt alone leaves no room for the response' : '';
    throw new Error(`the example has ${length} tokens and the model sees ${room}${noRoom}; shorten it`);
  };
}

/** Options that have no meaning beside model.pretrain_mode_enable. */
export function refuseBesidePretraining(values: DemonstrationColumns): void {
  if (!values['model.pretrain_mode_enable']) return;
  const given = [
    ...(values['data.output_key'] === undefined ? [] : ['data.output_key']),
    ...(values['data.input_template'] === undefined ? [] : ['data.input_template']),
    ...(values['data.apply_chat_template'] ? ['data.apply_chat_template'] : []),
  ];
  if (given.length === 0) return;
  throw new ConfigError([
    `model.pretrain_mode_enable learns the text of data.input_key as it is; leave out ${given.join(' and ')}`,
  ]);
}
