import { describe, expect, it } from 'vitest';
import type { LearnerSequence } from '../engines/contracts.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { exampleSequences, rowToExample } from './conversations.ts';

const renderer = byteRenderer();

function show({ tokens, predict }: LearnerSequence) {
  const spans: string[] = [];
  for (let start = 0; start < tokens.length; ) {
    let end = start;
    while (end < tokens.length && predict[end] === predict[start]) end++;
    if (predict[start] === 1) spans.push(renderer.decode(tokens.subarray(start, end), { special: true }));
    start = end;
  }
  return { text: renderer.decode(tokens, { special: true }), spans };
}

describe('exampleSequences', () => {
  it('predicts every answer of a conversation, its end included, and nothing else', () => {
    const messages = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: '2+2?' },
      { role: 'assistant', content: 'calc(2+2)' },
      { role: 'tool', content: '4' },
      { role: 'assistant', content: 'four' },
    ];
    const [sequence, ...others] = exampleSequences({ messages }, renderer);
    expect(others).toEqual([]);
    const { text, spans } = show(sequence!);
    expect(spans).toEqual(['calc(2+2)<|im_end|>', 'four<|im_end|>']);
    expect(text).toBe(
      '<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\ncalc(2+2)<|im_end|>\n<|im_start|>tool\n4<|im_end|>\n<|im_start|>assistant\nfour<|im_end|>',
    );
  });

  it('opens a new sequence where the template shows the past differently, and predicts each answer once', () => {
    const forgetful = {
      ...renderer,
      extend: () => ({ kind: 'branch' as const, tokens: renderer.encode('anew:'), reason: '' }),
    };
    const messages = ['a', 'b', 'c', 'd'].map((content, i) => ({ role: i % 2 ? 'assistant' : 'user', content }));
    expect(exampleSequences({ messages }, forgetful).map(sequence => show(sequence).spans)).toEqual([
      ['b<|im_end|>'],
      ['d<|im_end|>'],
    ]);
  });

  it('takes prompt and response as text', () => {
    const [sequence] = exampleSequences({ prompt: 'Q:', response: 'A' }, renderer);
    expect(show(sequence!)).toEqual({ text: 'Q:A<|im_end|>', spans: ['A<|im_end|>'] });
  });

  it('refuses what it cannot learn from', () => {
    expect(() => exampleSequences({ messages: [{ role: 'user', content: 'x' }] }, renderer)).toThrow(
      /no message of the role assistant/,
    );
    const call = { type: 'function' as const, function: { name: 'f', arguments: '{}' } };
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: '', tool_calls: [call] },
    ];
    expect(() => exampleSequences({ messages }, renderer)).toThrow(/tool_calls/);
  });
});

describe('rowToExample', () => {
  const options = { inputKey: 'input', applyChatTemplate: false };
  it('reads conversations and pairs', () => {
    const messages = [{ role: 'user', content: 'x' }];
    expect(rowToExample({ input: messages }, options)).toEqual({ messages });
    const pair = { ...options, outputKey: 'output', inputTemplate: '<{}>' };
    expect(rowToExample({ input: 'x', output: 'y' }, pair)).toEqual({ prompt: '<x>', response: 'y' });
    expect(rowToExample({ input: 'x', output: 'y' }, { ...pair, applyChatTemplate: true })).toEqual({
      prompt: [{ role: 'user', content: '<x>' }],
      response: 'y',
    });
  });

  it('names the column that is wrong', () => {
    expect(() => rowToExample({ input: 'x' }, options)).toThrow(
      /"input" \(data\.input_key\) must hold a list of messages.*data\.output_key/,
    );
    expect(() => rowToExample({ input: 'x' }, { ...options, outputKey: 'output' })).toThrow(
      /"output" \(data\.output_key\)/,
    );
    expect(() => rowToExample({ input: 3, output: 'y' }, { ...options, outputKey: 'output' })).toThrow(
      /"input" \(data\.input_key\)/,
    );
    expect(() => rowToExample(7, options)).toThrow(/expected a JSON object/);
  });
});
