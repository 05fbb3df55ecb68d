import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dialectOfTemplate, TOOL_DIALECTS, toolDialect } from './choose.ts';
import type { ParsedAnswer } from './dialect.ts';

/** Answers as the models' publishers document them, beside what they mean. */
const call = (name: string, given: Record<string, unknown>) => ({ kind: 'call', name, arguments: given });
const bad = (error: string, name?: string) => ({
  kind: 'malformed',
  ...(name === undefined ? {} : { name }),
  error: expect.stringContaining(error),
});

const CASES: readonly (readonly [dialect: string, answer: string, calls: unknown[], content: string])[] = [
  ['hermes', 'plain words', [], 'plain words'],
  ['hermes', '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>', [call('add', { a: 1 })], ''],
  [
    'hermes',
    'Let me see.\n<tool_call>{"name":"a","arguments":{}}</tool_call>\n<tool_call>{"name":"b"}</tool_call>',
    [call('a', {}), call('b', {})],
    'Let me see.',
  ],
  ['hermes', '<tool_call>{"name":"a","arguments":"{\\"x\\":2}"}</tool_call>', [call('a', { x: 2 })], ''],
  ['hermes', '<tool_call>{"name":"a","arguments":{"s":"</tool>"}}', [call('a', { s: '</tool>' })], ''],
  ['hermes', '<tool_call>{"name": "a", "arguments": {"x": </tool_call>', [bad('not valid JSON')], ''],
  ['hermes', '<tool_call>[1]</tool_call>', [bad('a JSON object')], ''],
  ['hermes', '<tool_call>{"arguments":{}}</tool_call>', [bad('"name"')], ''],
  ['hermes', '<tool_call>{"name":"a","arguments":[1]}</tool_call>', [bad('"arguments" must be', 'a')], ''],
  ['llama', '{"name": "add", "parameters": {"a": 1}}', [call('add', { a: 1 })], ''],
  ['llama', '<|python_tag|>{"name": "add", "parameters": {"a": "{"}}', [call('add', { a: '{' })], ''],
  ['llama', '{"name":"a","parameters":{}}; {"name":"b","parameters":{}}', [call('a', {}), call('b', {})], ''],
  ['llama', 'The object is {"name": "x"}.', [], 'The object is {"name": "x"}.'],
  ['llama', '{"answer": 4}', [], '{"answer": 4}'],
  ['llama', '{"name": "add", "parameters": {"a": 1}', [bad('not valid JSON')], ''],
  ['llama', '<|python_tag|>print(1)', [bad('a JSON object')], ''],
  ['mistral', '[TOOL_CALLS] [{"name": "add", "arguments": {"a": [1, 2]}}]', [call('add', { a: [1, 2] })], ''],
  ['mistral', 'ok [TOOL_CALLS][{"name":"a"},{"name":"b","arguments":{}}]', [call('a', {}), call('b', {})], 'ok'],
  [
    'mistral',
    '[TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]sub{"b": 2}',
    [call('add', { a: 1 }), call('sub', { b: 2 })],
    '',
  ],
  ['mistral', '[TOOL_CALLS]add', [bad('no arguments', 'add')], ''],
  ['mistral', '[TOOL_CALLS] [{"name": "add"', [bad('not valid JSON')], ''],
  ['mistral', '[TOOL_CALLS] what now', [bad('a JSON array of calls')], ''],
  [
    'xml',
    '<tool_call>\n<function=run>\n<parameter=code>\nif a < b:\n  print("x")\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>',
    [call('run', { code: 'if a < b:\n  print("x")', n: 3 })],
    '',
  ],
  ['xml', '<tool_call><function=f></function></tool_call>', [call('f', {})], ''],
  ['xml', '<tool_call><function=f><parameter=a>[1,</parameter></function></tool_call>', [call('f', { a: '[1,' })], ''],
  ['xml', '<tool_call><function=f><parameter=a>1', [bad('no </parameter>', 'f')], ''],
  ['xml', '<tool_call>{"name":"f"}</tool_call>', [bad('<function=TOOL>')], ''],
  ['react', 'Thought: hm\nAction: add\nAction Input: {"a": 1}', [call('add', { a: 1 })], 'Thought: hm'],
  ['react', 'Action: add\nAction Input: {"a": 1}\nObservation: 7', [call('add', { a: 1 })], ''],
  ['react', 'Thought: done\nFinal Answer: 42', [], '42'],
  ['react', 'Action: add', [bad('"Action Input:" is missing', 'add')], ''],
  ['react', 'Action: add\nAction Input: 4', [bad('must be a JSON object', 'add')], ''],
  ['react', 'Action: add\nAction Input: {"a"', [bad('not valid JSON', 'add')], ''],
  ['react', 'Action:\nAction Input: {}', [bad('names no tool')], ''],
];

describe('tool-call dialects', () => {
  it.each(CASES)('%s reads %j', (name, answer, calls, content) => {
    const parsed = toolDialect(name).parse(answer);
    expect(parsed.calls).toEqual(calls);
    // What was written makes the same calls and says nothing else.
    const again = toolDialect(name).parse(parsed.written);
    expect([again.calls, again.content]).toEqual([calls, '']);
    expect(parsed.content).toBe(content);
    expect(parsed.reasoning).toBeUndefined();
  });

  it.each(TOOL_DIALECTS)('%s keeps reasoning apart, and makes no call from inside it', name => {
    const dialect = toolDialect(name);
    const written: Record<string, string> = {
      hermes: '<tool_call>{"name":"a"}</tool_call>',
      llama: '{"name":"a","parameters":{}}',
      mistral: '[TOOL_CALLS]a{}',
      xml: '<tool_call><function=a></function></tool_call>',
      react: 'Action: a\nAction Input: {}',
    };
    const one = written[name]!;
    expect(dialect.parse(`<think>\nI could write ${one}\n</think>\n\n${one}`)).toMatchObject({
      reasoning: `I could write ${one}`,
      calls: [call('a', {})],
    });
    expect(dialect.parse(`so be it</think>${one}`)).toMatchObject({ reasoning: 'so be it', calls: [call('a', {})] });
    expect(dialect.parse(`<think>${one}`)).toMatchObject({ reasoning: one, calls: [], content: '' });
  });

  it.each(TOOL_DIALECTS)('%s never throws and never invents text', name => {
    const piece = fc.constantFrom(
      ...['<tool_call>', '</tool_call>', '{"name":"f","arguments":{"a":1}}', '{', '}', '[', ']', '"', '\\', ';', '\n'],
      ...['[TOOL_CALLS]', '[ARGS]', '<|python_tag|>', '<function=f>', '<parameter=a>', '</parameter>', '</think>'],
      ...['Action: f\n', 'Action Input: ', 'Observation:', 'Final Answer:', '<think>', 'word ', '😀'],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
        const answer = pieces.join('');
        const parsed: ParsedAnswer = toolDialect(name).parse(answer);
        expect(answer.replace(/\s/g, '')).toContain(parsed.reasoning?.replace(/\s/g, '') ?? '');
        for (const one of parsed.calls) if (one.kind === 'call') expect(answer).toContain(one.name);
      }),
      { numRuns: 500 },
    );
  });

  it('is linear in a long answer', () => {
    // Quadratic scanning of 2 MB would not end within the test's time limit.
    for (const piece of ['<tool_call>', '{', '[TOOL_CALLS]', '"', '<parameter=a>', 'Action: f\n', '<think>', '\\']) {
      for (const name of TOOL_DIALECTS) toolDialect(name).parse(piece.repeat(2_000_000 / piece.length));
    }
  });

  it('names the known dialects for an unknown one', () => {
    expect(() => toolDialect('gpt')).toThrow(/unknown tool dialect "gpt"; known: hermes, llama, mistral, xml, react/);
  });
});

describe('dialectOfTemplate', () => {
  it.each([
    ['{{ "<tool_call>" }}{{ tool_call | tojson }}', 'hermes'],
    ['<tool_call>\n<function={{ name }}>\n<parameter={{ k }}>', 'xml'],
    ["{{ '[TOOL_CALLS] [' }}", 'mistral'],
    ['{{- \'"parameters": \' }}{{ arguments | tojson }}', 'llama'],
    ['{{ message.content }}', undefined],
  ])('%s writes %s', (template, name) => {
    expect(dialectOfTemplate(template)?.name).toBe(name);
  });
});
