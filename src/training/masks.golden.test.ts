import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { LearnerSequence } from '../engines/contracts.ts';
import type { Message } from '../episode/task.ts';
import { chatRenderer } from '../text/chat-renderer.ts';
import { chatTemplate } from '../text/template.ts';
import { tokenizer } from '../text/tokenizer.ts';
import { exampleSequences, rowToExample } from './conversations.ts';

/** Which tokens are trained, against Transformers' return_assistant_tokens_mask; see tools/golden/masks.py. */

interface Row {
  readonly text: string;
  readonly ids: number[];
  readonly mask: string;
  readonly error?: string;
}

const directory = new URL('../../tests/goldens/masks/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, directory), 'utf8');
const golden = JSON.parse(read('masks.json')) as {
  readonly conversations: Record<string, { messages: Message[]; tools?: unknown[] }>;
  readonly formats: Record<string, { stops: string[]; rows: Record<string, Row> }>;
};
const codec = tokenizer(JSON.parse(read('tokenizer.json')), {});

function rendererOf(format: string) {
  return chatRenderer({
    codec,
    template: chatTemplate(read(`templates/${format}.jinja`)),
    stopTokens: golden.formats[format]!.stops.map(text => codec.tokenId(text)!),
  });
}

function sequencesOf(format: string, conversation: string): LearnerSequence[] {
  const example = rowToExample(golden.conversations[conversation], { inputKey: 'messages', applyChatTemplate: true });
  return exampleSequences(example, rendererOf(format));
}

/** The text with the trained spans in brackets. */
function marked({ tokens, predict }: LearnerSequence): string {
  let text = '';
  for (let start = 0, end = 0; start < tokens.length; start = end) {
    while (end < tokens.length && predict[end] === predict[start]) end++;
    const part = codec.decode(tokens.subarray(start, end), { special: true });
    text += predict[start] === 1 ? `[[${part}]]` : part;
  }
  return text;
}

const transformers = (format: string, conversation: string): LearnerSequence => {
  const { ids, mask } = golden.formats[format]!.rows[conversation]!;
  return { tokens: Int32Array.from(ids), predict: Uint8Array.from(mask, Number) };
};

/** Formats that show the past of a conversation differently from how it was answered; see below. */
const REWRITING = ['qwen3', 'deepseek-r1'];
const WITH_CALLS = ['qwen2.5', 'llama3', 'mistral'];
const faithful = Object.keys(golden.formats).filter(format => !REWRITING.includes(format));

describe('conversations', () => {
  it.each(faithful)(
    'in the format of %s: the tokens and the mask of Transformers, up to the last end of turn',
    format => {
      const titles = Object.keys(golden.conversations).filter(title => title !== 'tool' || WITH_CALLS.includes(format));
      for (const title of titles) {
        const [{ tokens, predict }, ...others] = sequencesOf(format, title) as [LearnerSequence];
        const expected = transformers(format, title);
        expect(others, title).toEqual([]);
        expect([...tokens], title).toEqual([...expected.tokens.subarray(0, tokens.length)]);
        expect([...predict], title).toEqual([...expected.predict.subarray(0, predict.length)]);
        // What we leave out is what the template writes behind the last end of turn, which nobody samples.
        expect(codec.decode(expected.tokens.subarray(tokens.length), { special: true }).trim(), title).toBe('');
        expect([...expected.predict.subarray(tokens.length)], title).not.toContain(1);
      }
      expect(titles.length).toBeGreaterThanOrEqual(6);
    },
  );

  it('Qwen3, one answer: equal', () => {
    const [{ tokens, predict }] = sequencesOf('qwen3', 'one answer') as [LearnerSequence];
    const expected = transformers('qwen3', 'one answer');
    expect([...tokens]).toEqual([...expected.tokens.subarray(0, tokens.length)]);
    expect([...predict]).toEqual([...expected.predict.subarray(0, tokens.length)]);
  });

  // Transformers renders a conversation once, so it learns earlier answers without the reasoning that led to them. Here
  // each answer is learned as it is sampled: with its reasoning, in a sequence of its own where it is dropped later.
  it('Qwen3, dropped reasoning: every answer with its own, and earlier ones without, where Transformers drops it', () => {
    const question = '<|im_start|>user\n48/2?<|im_end|>\n<|im_start|>assistant\n';
    const next = '<|im_end|>\n<|im_start|>user\n4/2?<|im_end|>\n<|im_start|>assistant\n';
    const thought = '<think>\nhalf of it\n</think>\n\n';
    expect(sequencesOf('qwen3', 'reasoning').map(marked)).toEqual([
      `${question}[[${thought}24<|im_end|>]]`,
      `${question}24${next}[[${thought}2<|im_end|>]]`,
    ]);
    expect(marked(transformers('qwen3', 'reasoning'))).toBe(
      `${question}[[24<|im_end|>]]${next.slice('<|im_end|>'.length)}[[${thought}2<|im_end|>]]\n`,
    );
  });

  // The prompt of R1 ends inside of the reasoning, and Transformers' rendering of an answered question has neither.
  it('DeepSeek-R1: what comes behind the <think> that the prompt opens, where Transformers shows no reasoning', () => {
    const [begin, asked] = ['<｜begin▁of▁sentence｜><｜User｜>48/2?<｜Assistant｜>', '<｜User｜>4/2?<｜Assistant｜>'];
    const end = '<｜end▁of▁sentence｜>';
    expect(sequencesOf('deepseek-r1', 'reasoning').map(marked)).toEqual([
      `${begin}<think>\n[[half of it\n</think>\n\n24${end}]]`,
      `${begin}\n\n24${end}${asked}<think>\n[[half of it\n</think>\n\n2${end}]]`,
    ]);
    expect(marked(transformers('deepseek-r1', 'reasoning'))).toBe(`${begin}[[\n\n24${end}]]${asked}[[\n\n2${end}]]`);
  });

  // A policy samples behind the tokens of its prompt; encoding both together would melt the space into the answer.
  it('an answer is encoded behind its prompt, not together with it', () => {
    const renderer = chatRenderer({
      codec,
      template: chatTemplate(
        'Q:{{ messages[0].content }}A: {% if messages[1] %}{{ messages[1].content }}</s>{% endif %}',
      ),
      stopTokens: [codec.tokenId('</s>')!],
    });
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'the answer' },
    ];
    const [{ tokens }] = exampleSequences({ messages }, renderer) as [LearnerSequence];
    expect([...tokens]).toEqual([...codec.encode('Q:xA: '), ...codec.encode('the answer</s>')]);
    expect([...tokens]).not.toEqual([...codec.encode('Q:xA: the answer</s>')]);
  });
});

describe('tool calls', () => {
  it.each(WITH_CALLS)('of %s are learned as its template writes them, and read back by its dialect', format => {
    const [first] = marked(sequencesOf(format, 'tool')[0]!).match(
      /(?<=\[\[).*?(?=(<\|im_end\|>|<\|eot_id\|>|<\/s>)\]\])/s,
    )!;
    expect(rendererOf(format).toolDialect!.parse(first!).calls).toEqual([
      { kind: 'call', name: 'calculator', arguments: { expression: '48/2', exact: true } },
    ]);
  });

  it('are refused, with what to do, where the template shows none', () => {
    for (const format of ['chatml', 'gemma', 'zephyr', 'command-r']) {
      expect(() => sequencesOf(format, 'tool'), format).toThrow(/does not show the tool_calls.*write the call into/);
    }
  });
});
