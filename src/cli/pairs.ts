import type { preferenceDataOptions } from '../config/preferences.ts';
import type { Values } from '../options/option.ts';
import type { Renderer } from '../text/renderer.ts';
import { type PreferencePair, pairLength, preferencePair, rowToPreference } from '../training/preferences.ts';
import type { Reading } from './supervised.ts';

type PairColumns = Values<typeof preferenceDataOptions> & {
  readonly 'data.input_template'?: string | undefined;
  readonly 'data.apply_chat_template': boolean;
  readonly marginKey?: string | undefined;
};

/** How the rows of a command that compares answers are read and shown. */
export function pairReading(values: PairColumns, room: (contextLength: number) => number): Reading<PreferencePair> {
  return {
    read: ({ renderer, contextLength }) => pairReader(values, renderer, room(contextLength)),
    shown: ({ chosen, rejected }) => [
      { name: 'chosen', sequence: chosen },
      { name: 'rejected', sequence: rejected },
    ],
    marks: 'answer tokens',
  };
}

/** Makes a pair of a row. One that is longer than `room` tokens cannot be used. */
export function pairReader(values: PairColumns, renderer: Renderer, room: number): (row: unknown) => PreferencePair {
  const columns = {
    promptKey: values['data.prompt_key'],
    chosenKey: values['data.chosen_key'],
    rejectedKey: values['data.rejected_key'],
    marginKey: values.marginKey,
    inputTemplate: values['data.input_template'],
    applyChatTemplate: values['data.apply_chat_template'],
  };
  return row => {
    const pair = preferencePair(rowToPreference(row, columns), renderer);
    if (pairLength(pair) <= room) return pair;
    throw new Error(
      `the longer answer has ${pairLength(pair)} tokens with its prompt and the model sees ${room}; shorten it`,
    );
  };
}
