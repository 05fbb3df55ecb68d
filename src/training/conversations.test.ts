import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LearnerSequence } from '../engines/contracts.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { chatRenderer } from '../text/chat-renderer.ts';
import { chatTemplate } from '../text/template.ts';
import { endedText, exampleSequences, rowToExample, textSequences } from './conversations.ts';

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

function chatRendererWith(stopTokens: readonly number[], template?: string) {
  const source =
    template ??
    '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';
  return chatRenderer({ codec: renderer, template: chatTemplate(source), stopTokens });
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
    expect(() => exampleSequences({ messages }, renderer)).toThrow(/template .* does not show the tool_calls/);
    const empty = messages.map(({ role }) => ({ role, content: role === 'user' ? 'x' : '' }));
    expect(() => exampleSequences({ messages: empty }, renderer)).toThrow(
      /message 2 .* without content and tool_calls/,
    );
  });

  it('ends answers as the template does, whatever stop token comes first', () => {
    const [end, text] = renderer.stopTokens;
    const turned = chatRendererWith([text!, end!]);
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'y' },
    ];
    expect(show(exampleSequences({ messages }, turned)[0]!).spans).toEqual(['y<|im_end|>']);
    expect(show(exampleSequences({ prompt: messages.slice(0, 1), response: 'y' }, turned)[0]!).spans).toEqual([
      'y<|im_end|>',
    ]);
  });

  it('ends answers with the first stop token where the template writes none', () => {
    const bare = chatRendererWith(renderer.stopTokens, '{% for m in messages %}{{ m.content }}\n{% endfor %}');
    const messages = ['x', 'y', 'z', 'w'].map((content, i) => ({ role: i % 2 ? 'assistant' : 'user', content }));
    // The end of turn is not in what the template shows, so the second answer has a context of its own.
    expect(exampleSequences({ messages }, bare).map(show)).toEqual([
      { text: 'x\ny<|im_end|>', spans: ['y<|im_end|>'] },
      { text: 'x\ny\nz\nw<|im_end|>', spans: ['w<|im_end|>'] },
    ]);
  });
});

describe('textSequences', () => {
  it('predicts every token but the first once, in windows that overlap by one', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.integer({ min: 2, max: 9 }), (text, window) => {
        const whole = endedText(text, renderer);
        const sequences = textSequences(text, renderer, window);
        const predicted = sequences.flatMap(({ tokens, predict }) => [...tokens].filter((_, t) => predict[t] === 1));
        expect(predicted).toEqual([...whole.subarray(1)]);
        for (const { tokens, predict } of sequences) {
          expect(tokens.length).toBeLessThanOrEqual(window);
          expect(predict[0]).toBe(0);
          expect(tokens.length > 1 || whole.length === 1).toBe(true);
        }
      }),
    );
    expect(() => textSequences('x', renderer, 1)).toThrow(/windows of 1 tokens/);
  });
});

describe('rowToExample', () => {
  const options = { inputKey: 'input', applyChatTemplate: false };
  it('reads calls without words, columns that are null, and the tools, as a list or as JSON', () => {
    const call = { type: 'function', function: { name: 'f', arguments: '{}' } };
    const input = [
      { role: 'user', content: 'x', tool_calls: null },
      { role: 'assistant', content: null, tool_calls: [call] },
    ];
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: '', tool_calls: [call] },
    ];
    expect(rowToExample({ input, tools: null }, options)).toEqual({ messages });
    expect(rowToExample({ input, tools: [{ a: 1 }] }, options)).toEqual({ messages, tools: [{ a: 1 }] });
    expect(rowToExample({ input, tools: '[{"a":1}]' }, options)).toEqual({ messages, tools: [{ a: 1 }] });
    expect(() => rowToExample({ input, tools: '[{' }, options)).toThrow(/column "tools" .* not JSON/);
    expect(() => rowToExample({ input, tools: 7 }, options)).toThrow(/column "tools" .* got 7/);
  });

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
    expect(() => rowToExample({ input: 'x', output: '' }, { ...options, outputKey: 'output' })).toThrow(/got ""/);
    expect(() => rowToExample({ q: 'x' }, options)).toThrow(/no column "input" \(data\.input_key\); this row has q/);
    expect(() => rowToExample(7, options)).toThrow(/expected a JSON object/);
  });
});
