import { describe, expect, it } from 'vitest';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { preferencePair, rowToPreference, sequencesOf } from './preferences.ts';

const columns = { chosenKey: 'chosen', rejectedKey: 'rejected', applyChatTemplate: false };
const renderer = byteRenderer();
const end = renderer.stopTokens[0]!;
const user = (content: string) => ({ role: 'user', content });
const assistant = (content: string) => ({ role: 'assistant', content });
const bytes = (text: string) => [...renderer.encode(text)];

describe('rowToPreference', () => {
  it('reads a prompt and two answers', () => {
    const row = { q: 'why?', chosen: 'so', rejected: 'no', gap: 2 };
    expect(rowToPreference(row, { ...columns, promptKey: 'q', marginKey: 'gap' })).toEqual({
      prompt: 'why?',
      chosen: 'so',
      rejected: 'no',
      margin: 2,
    });
    const templated = { ...columns, promptKey: 'q', inputTemplate: 'Q: {}', applyChatTemplate: true };
    expect(rowToPreference(row, templated).prompt).toEqual([user('Q: why?')]);
    expect(
      rowToPreference({ q: [user('why?')], chosen: 'so', rejected: 'no' }, { ...columns, promptKey: 'q' }),
    ).toEqual({ prompt: [user('why?')], chosen: 'so', rejected: 'no', margin: 0 });
  });

  it('takes the prompt of conversations from the conversations', () => {
    const context = [user('a'), assistant('b'), user('c')];
    const row = { chosen: [...context, assistant('yes')], rejected: [...context, assistant('no')] };
    expect(rowToPreference(row, columns)).toEqual({ prompt: context, chosen: 'yes', rejected: 'no', margin: 0 });
    const apart = { p: context, chosen: [assistant('yes')], rejected: [assistant('no')] };
    expect(rowToPreference(apart, { ...columns, promptKey: 'p' })).toMatchObject({ prompt: context, chosen: 'yes' });
  });

  it.each([
    [{ rejected: 'x' }, {}, /no column "chosen" \(data\.chosen_key\); this row has rejected/],
    [{ chosen: 'x' }, {}, /no column "rejected" \(data\.rejected_key\)/],
    [{ chosen: '', rejected: 'x' }, {}, /column "chosen" .* must hold the text of an answer/],
    [{ chosen: 'x', rejected: 3 }, {}, /column "rejected" .* must hold the text/],
    [{ chosen: 'x', rejected: 'x' }, {}, /hold the same answer/],
    [{ chosen: [user('x')], rejected: [user('y')] }, {}, /must end with an answer of the role assistant/],
    [
      { chosen: [user('a'), assistant('x')], rejected: [user('b'), assistant('y')] },
      {},
      /must differ in their last message alone/,
    ],
    [
      { chosen: [user('a'), assistant('x')], rejected: [user('a'), assistant('y')], p: 'q' },
      { promptKey: 'p' },
      /conversations and the prompt .* is text/,
    ],
    [{ chosen: 'x', rejected: 'y', p: '' }, { promptKey: 'p' }, /column "p" \(data\.prompt_key\) must hold text/],
    [{ chosen: 'x', rejected: 'y', m: 'large' }, { marginKey: 'm' }, /must hold the margin .* got "large"/],
    ['x', {}, /expected a JSON object/],
  ])('refuses %j', (row, more, message) => {
    expect(() => rowToPreference(row, { ...columns, ...more })).toThrow(message);
  });
});

describe('preferencePair', () => {
  it('predicts the answers with the token that ends them, and nothing else', () => {
    const pair = preferencePair({ prompt: 'p', chosen: 'ab', rejected: 'c', margin: 0 }, renderer);
    const [chosen, rejected] = sequencesOf([pair]);
    expect([...chosen!.tokens]).toEqual([...bytes('pab'), end]);
    expect([...chosen!.predict]).toEqual([0, 1, 1, 1]);
    expect([...rejected!.tokens]).toEqual([...bytes('pc'), end]);
    expect([...rejected!.predict]).toEqual([0, 1, 1]);
  });

  it('renders messages as for a policy', () => {
    const prompt = [user('hi')];
    const { chosen } = preferencePair({ prompt, chosen: 'a', rejected: 'b', margin: 0 }, renderer);
    expect([...chosen.tokens]).toEqual([...renderer.prompt(prompt), ...bytes('a'), end]);
  });

  it('predicts all of a text without a prompt but its first token', () => {
    const { chosen } = preferencePair({ prompt: '', chosen: 'abc', rejected: 'b', margin: 0 }, renderer);
    expect([...chosen.predict]).toEqual([0, 1, 1, 1]);
  });
});
