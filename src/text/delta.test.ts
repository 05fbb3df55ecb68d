import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Message } from '../episode/task.ts';
import { chatRenderer } from './chat-renderer.ts';
import type { Renderer } from './renderer.ts';
import { chatTemplate } from './template.ts';
import { loadTokenizer } from './tokenizer.ts';

const goldens = new URL('../../tests/goldens/text/', import.meta.url);
const bytes = await loadTokenizer(fileURLToPath(new URL('bytes', goldens)));
const chars = await loadTokenizer(fileURLToPath(new URL('chars', goldens)));
const metaspace = await loadTokenizer(fileURLToPath(new URL('metaspace', goldens)));

const TEMPLATES = ['chatml', 'headers', 'turns', 'thinking'] as const;
const sources = Object.fromEntries(
  await Promise.all(
    [...TEMPLATES, 'chars'].map(async name => [
      name,
      await readFile(new URL(`templates/${name}.jinja`, goldens), 'utf8'),
    ]),
  ),
);
const END_OF_TURN = { chatml: '<|im_end|>', headers: '<|eot_id|>', turns: '<end_of_turn>', thinking: '<|im_end|>' };

function rendererOf(name: (typeof TEMPLATES)[number]): Renderer {
  return chatRenderer({
    codec: bytes,
    template: chatTemplate(sources[name], { bos_token: '<bos>' }),
    stopTokens: [bytes.tokenId(END_OF_TURN[name])!],
  });
}

const user = (content: string): Message => ({ role: 'user', content });
const tool = (content: string): Message => ({ role: 'tool', content });
const assistant = (content: string): Message => ({ role: 'assistant', content });

/** A conversation kept as an executor keeps it: messages, and the tokens the policy has seen and sampled. */
function conversation(renderer: Renderer, start: readonly Message[]) {
  let earlier = [...start];
  let context = renderer.prompt(start);
  return {
    text: () => renderer.decode(context, { special: true }),
    /** Feeds `added` after the policy has sampled the tokens of `sampled` (text or ids). */
    turn(sampled: string | Int32Array, added: readonly Message[], answer?: Message) {
      const tokens = typeof sampled === 'string' ? renderer.encode(sampled) : sampled;
      const seen = Int32Array.from([...context, ...tokens]);
      const shown = answer ?? assistant(renderer.decode(tokens));
      const delta = renderer.extend({ context: seen, earlier, answer: shown, added });
      context = delta.kind === 'append' ? Int32Array.from([...seen, ...delta.tokens]) : delta.tokens;
      earlier = [...earlier, shown, ...added];
      const text = renderer.decode(delta.tokens, { special: true });
      return { ...delta, text, whole: renderer.decode(renderer.prompt(earlier), { special: true }) };
    },
  };
}

describe('after an answer with its end of turn', () => {
  it.each([
    ['chatml', '\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n'],
    [
      'headers',
      '<|start_header_id|>user<|end_header_id|>\n\nmore<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    ],
    ['turns', '\n<start_of_turn>user\nmore<end_of_turn>\n<start_of_turn>model\n'],
    ['thinking', '\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n'],
  ] as const)('%s adds what its template writes after it', (name, expected) => {
    const end = END_OF_TURN[name];
    const whole = conversation(rendererOf(name), [user('hi')]);
    expect(whole.turn(`yes${end}`, [user('more')])).toMatchObject({ kind: 'append', text: expected });
    const cut = conversation(rendererOf(name), [user('hi')]);
    expect(cut.turn('yes', [user('more')])).toMatchObject({ kind: 'append', text: end + expected });
    // The two contexts are the same from here on.
    expect(cut.text()).toBe(whole.text());
  });

  it('the text of the whole conversation is the rendering, over several turns', () => {
    for (const name of TEMPLATES) {
      const talk = conversation(rendererOf(name), [user('one')]);
      for (const word of ['two', 'three', 'four']) {
        const turn = talk.turn(`${word}${END_OF_TURN[name]}`, [user(`after ${word}`)]);
        expect(turn.kind).toBe('append');
        expect(talk.text()).toBe(turn.whole);
      }
    }
  });
});

describe('white space that a template trims', () => {
  it('stays as it was sampled, and is not fed twice', () => {
    const trimmed = conversation(rendererOf('headers'), [user('hi')]);
    expect(trimmed.turn('  yes \n\n<|eot_id|>', [user('more')])).toMatchObject({
      kind: 'append',
      text: expect.stringMatching(/^<\|start_header_id\|>user/),
    });
    // The trimmed answer is behind us: the next turn is an append again.
    expect(trimmed.turn('no', [user('last')])).toMatchObject({
      kind: 'append',
      text: expect.stringMatching(/^<\|eot_id\|><\|start_header_id\|>/),
    });
    const kept = conversation(rendererOf('chatml'), [user('hi')]);
    expect(kept.turn('yes\n', [user('more')])).toMatchObject({
      kind: 'append',
      text: expect.stringMatching(/^<\|im_end\|>\n/),
    });
    const empty = conversation(rendererOf('chatml'), [user('hi')]);
    expect(empty.turn('', [user('more')])).toMatchObject({
      kind: 'append',
      text: expect.stringMatching(/^<\|im_end\|>\n/),
    });
  });
});

describe('tools', () => {
  it('results are fed together, as the template merges them', () => {
    const call = '<tool_call>\n{"name":"calculator","arguments":{"expression":"48/2"}}\n</tool_call>';
    const talk = conversation(rendererOf('chatml'), [user('48/2?')]);
    // The template prints the call with other spaces than the policy sampled.
    const answer: Message = {
      ...assistant(''),
      tool_calls: [{ type: 'function', function: { name: 'calculator', arguments: '{"expression":"48/2"}' } }],
    };
    const turn = talk.turn(`${call}<|im_end|>`, [tool('24'), tool('24.0')], answer);
    expect(turn).toMatchObject({
      kind: 'append',
      text:
        '\n<|im_start|>user\n<tool_response>\n24\n</tool_response>\n<tool_response>\n24.0\n</tool_response><|im_end|>\n' +
        '<|im_start|>assistant\n',
    });
    expect(talk.text()).toContain(`${call}<|im_end|>\n`);
    expect(talk.turn('24<|im_end|>', [user('thanks')]).kind).toBe('append');
  });

  it('a call that the template shows differently branches', () => {
    const talk = conversation(rendererOf('chatml'), [user('48/2?')]);
    const answer: Message = {
      ...assistant(''),
      tool_calls: [{ type: 'function', function: { name: 'calculator', arguments: {} } }],
    };
    const sampled = '<tool_call>{"arguments": {}, "name": "calculator"}</tool_call><|im_end|>';
    const turn = talk.turn(sampled, [tool('24')], answer);
    expect(turn).toMatchObject({ kind: 'branch', reason: expect.stringContaining('now shows') });
    expect(turn.text).toBe(turn.whole);
  });
});

describe('a template that drops earlier reasoning', () => {
  const thought = '<think>\nhalf of it\n</think>\n\n';

  it('appends after tools and branches at the next question', () => {
    const talk = conversation(rendererOf('thinking'), [user('48/2?')]);
    expect(talk.turn(`${thought}call<|im_end|>`, [tool('24')])).toMatchObject({
      kind: 'append',
      text: '\n<|im_start|>tool\n24<|im_end|>\n<|im_start|>assistant\n',
    });
    const turn = talk.turn(`${thought}24<|im_end|>`, [user('and 4/2?')]);
    expect(turn.kind).toBe('branch');
    expect(turn.text).toBe(turn.whole);
    expect(turn.text).not.toContain('think');
    if (turn.kind === 'branch') {
      expect(turn.reason).toMatch(/now shows ".*assistant\\ncall.*" where the policy saw or sampled ".*<think>/);
    }
    // On the branch, which holds no reasoning, things go on.
    expect(talk.turn('2<|im_end|>', [user('bye')]).kind).toBe('append');
    expect(talk.turn(`${thought}2<|im_end|>`, [user('bye')]).kind).toBe('branch');
  });

  it('appends reasoning whose line breaks the template sets differently', () => {
    const talk = conversation(rendererOf('thinking'), [user('48/2?')]);
    expect(talk.turn('<think>half of it</think>call<|im_end|>', [tool('24')]).kind).toBe('append');
  });
});

describe('what else a rendering can change', () => {
  it('branches when the policy ended otherwise than the template does', () => {
    const talk = conversation(rendererOf('chatml'), [user('hi')]);
    const turn = talk.turn('yes<|endoftext|>', [user('more')]);
    expect(turn).toMatchObject({ kind: 'branch', reason: expect.stringContaining('<|endoftext|>') });
    expect(turn.text).toBe(turn.whole);
  });

  it('branches when special tokens inside the answer are not shown', () => {
    const talk = conversation(rendererOf('chatml'), [user('hi')]);
    expect(talk.turn('y<|im_start|>es<|im_end|>', [user('more')]).kind).toBe('branch');
  });

  it('appends although the tokenizer normalises the text of the conversation', () => {
    const talk = conversation(rendererOf('chatml'), [user('nai\u0308ve')]);
    const turn = talk.turn('ye\u0301s<|im_end|>', [user('more e\u0301')]);
    expect(turn).toMatchObject({
      kind: 'append',
      text: '\n<|im_start|>user\nmore \u00e9<|im_end|>\n<|im_start|>assistant\n',
    });
  });

  it('appends after an answer that was cut inside a character', () => {
    const talk = conversation(rendererOf('chatml'), [user('hi')]);
    const turn = talk.turn(bytes.encode('\u{1f642}').slice(0, 2), [user('more')]);
    expect(turn).toMatchObject({ kind: 'append', text: expect.stringMatching(/^<\|im_end\|>\n<\|im_start\|>user/) });
  });
});

describe('a character-level model', () => {
  const renderer = chatRenderer({
    codec: chars,
    template: chatTemplate(sources.chars, { eos_token: '<eos>' }),
    stopTokens: [chars.tokenId('<eos>')!],
  });

  it('appends what comes after the end of the answer', () => {
    const talk = conversation(renderer, [user('48/2')]);
    expect(talk.turn('div 48 2<eos>', [tool('24')])).toMatchObject({ kind: 'append', text: '>24=' });
    expect(talk.turn('24', [user('1+1')])).toMatchObject({ kind: 'append', text: '<eos>1+1=' });
    expect(talk.text()).toBe('48/2=div 48 2<eos>>24=24<eos>1+1=');
  });

  it('may end its answers with an ordinary character', () => {
    const dotted = chatRenderer({
      codec: chars,
      template: chatTemplate(sources.chars, { eos_token: '.' }),
      stopTokens: [chars.tokenId('.')!],
    });
    const talk = conversation(dotted, [user('48/2')]);
    expect(talk.turn('24.', [user('1+1')], assistant('24'))).toMatchObject({ kind: 'append', text: '1+1=' });
    expect(talk.turn('2', [user('2+2')])).toMatchObject({ kind: 'append', text: '.2+2=' });
  });
});

describe('a tokenizer that marks the beginning of a text', () => {
  it('takes no delta for one', () => {
    const renderer = chatRenderer({
      codec: metaspace,
      template: chatTemplate(
        '{% for m in messages %}{{ m.content }}{% if m.role == "assistant" %}{{ eos_token }}{% endif %}{% endfor %}',
        {
          eos_token: '<eos>',
        },
      ),
      stopTokens: [metaspace.tokenId('<eos>')!],
    });
    const talk = conversation(renderer, [user('the tool')]);
    const turn = talk.turn(' is<eos>', [user('the answer')]);
    expect(turn.kind).toBe('append');
    expect([...turn.tokens]).toEqual([...metaspace.encode('<eos>the answer').slice(1)]);
    expect([...turn.tokens]).not.toEqual([...metaspace.encode('the answer')]);
  });
});

describe('any conversation', () => {
  const piece = fc.constantFrom('a', 'word', ' ', '\n', '<think>\nso\n</think>\n\n', '\u{1f642}', '{"x": 1}', '\u00e9');
  const text = fc.array(piece, { maxLength: 5 }).map(parts => parts.join(''));
  const turns = fc.array(fc.record({ answer: text, cut: fc.boolean(), next: text }), { minLength: 1, maxLength: 4 });

  it.each(TEMPLATES)('of %s is kept as sampled and shown as rendered, white space aside, or branches', name => {
    const bare = (t: string) => t.replaceAll(/\s/g, '');
    fc.assert(
      fc.property(text, turns, (question, script) => {
        const talk = conversation(rendererOf(name), [user(question)]);
        for (const { answer, cut, next } of script) {
          const before = talk.text();
          const sampled = cut ? answer : answer + END_OF_TURN[name];
          const turn = talk.turn(sampled, [user(next)]);
          if (turn.kind === 'append') {
            expect(talk.text()).toBe(before + sampled + turn.text);
            expect(bare(talk.text())).toBe(bare(turn.whole));
          } else {
            expect(name).toBe('thinking');
            expect(talk.text()).toBe(turn.whole);
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});
