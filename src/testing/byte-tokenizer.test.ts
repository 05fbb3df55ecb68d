import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BYTE_SPECIAL, byteRenderer } from './byte-tokenizer.ts';

const renderer = byteRenderer();

describe('byteRenderer', () => {
  it('round-trips any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), text => {
        expect(renderer.decode(renderer.encode(text))).toBe(text);
      }),
    );
  });

  it('recognises special tokens and hides them unless asked', () => {
    const tokens = renderer.encode('a<|im_end|>é');
    expect([...tokens]).toEqual([97, BYTE_SPECIAL.end, 0xc3, 0xa9]);
    expect(renderer.decode(tokens)).toBe('aé');
    expect(renderer.decode(tokens, { special: true })).toBe('a<|im_end|>é');
  });

  it('renders a prompt that ends where the policy answers', () => {
    const tokens = renderer.prompt([{ role: 'user', content: 'hi' }]);
    expect(renderer.decode(tokens, { special: true })).toBe('<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n');
  });

  it('adds new messages after an answer, with or without its end of turn', () => {
    const earlier = [{ role: 'user', content: 'hi' }];
    const extend = (answer: string) =>
      renderer.extend({
        context: Int32Array.from([...renderer.prompt(earlier), ...renderer.encode(answer)]),
        earlier,
        answer: { role: 'assistant', content: renderer.decode(renderer.encode(answer)) },
        added: [{ role: 'user', content: 'more' }],
      });
    const turn = '\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n';
    expect(extend('yes<|im_end|>')).toEqual({ kind: 'append', tokens: renderer.encode(turn) });
    expect(extend('yes')).toEqual({ kind: 'append', tokens: renderer.encode(`<|im_end|>${turn}`) });
    expect(extend('yes<|endoftext|>').kind).toBe('branch');
  });
});
