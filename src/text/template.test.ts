import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chatTemplate, loadChatTemplate } from './template.ts';

const goldens = new URL('../../tests/goldens/text/', import.meta.url);
const golden = JSON.parse(await readFile(new URL('templates.json', goldens), 'utf8'));

interface Row {
  readonly template: string;
  readonly conversation: string;
  readonly tools: boolean;
  readonly generation: boolean;
  readonly text?: string;
  readonly error?: string;
}

describe('chatTemplate', () => {
  it.each(['chatml', 'headers', 'turns', 'thinking', 'chars'])(
    'renders %s as Transformers does, refusals included',
    async name => {
      const source = await readFile(new URL(`templates/${name}.jinja`, goldens), 'utf8');
      const template = chatTemplate(source, golden.variables);
      const rows: Row[] = golden.rows.filter((row: Row) => row.template === name);
      expect(rows.length).toBeGreaterThanOrEqual(10);
      for (const row of rows) {
        const render = () =>
          template.render(golden.conversations[row.conversation], {
            tools: row.tools ? golden.tools : undefined,
            addGenerationPrompt: row.generation,
          });
        if (row.error === undefined) expect(render()).toBe(row.text);
        else expect(render).toThrow(row.error);
      }
    },
  );

  it('prints arguments given as JSON text as the object that they are', () => {
    const template = chatTemplate('{{ messages[0].tool_calls[0].function.arguments | tojson }}');
    const render = (args: string) =>
      template.render([
        {
          role: 'assistant',
          content: '',
          tool_calls: [{ type: 'function', function: { name: 'f', arguments: args } }],
        },
      ]);
    expect(render('{"a":1}')).toBe('{"a": 1}');
    expect(render('{"a":')).toBe('"{\\"a\\":"');
  });

  it('takes no tools for none', () => {
    const template = chatTemplate('{{ "none" if tools is none else "some" }}');
    expect(template.render([], { tools: [] })).toBe('none');
    expect(template.render([], { tools: [{}] })).toBe('some');
  });

  it('knows the date', () => {
    expect(chatTemplate('{{ strftime_now("%Y-%m-%d") }}').render([])).toMatch(/^\d{4}-\d\d-\d\d$/);
  });

  it('says why it cannot render', () => {
    expect(() => chatTemplate('{% for %}')).toThrow(/the chat template is not valid Jinja/);
    const refusing = chatTemplate("{{ raise_exception('only one question') }}");
    expect(() => refusing.render([{ role: 'user', content: '' }])).toThrow(/roles \[user\]: only one question/);
  });
});

describe('loadChatTemplate', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'template-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const declare = (chat_template: unknown) =>
    writeFile(join(directory, 'tokenizer_config.json'), JSON.stringify({ chat_template }));
  const shown = async (tools?: unknown[]) => (await loadChatTemplate(directory, { x: 1 }))?.render([], { tools });

  it('prefers the file, then the configuration, which may name several', async () => {
    expect(await shown()).toBeUndefined();
    await declare(null);
    expect(await shown()).toBeUndefined();
    await declare('config {{ x }}');
    expect(await shown()).toBe('config 1');
    await declare([
      { name: 'default', template: 'usual' },
      { name: 'tool_use', template: 'tools' },
    ]);
    expect([await shown(), await shown([]), await shown([{}])]).toEqual(['usual', 'usual', 'tools']);
    await writeFile(join(directory, 'chat_template.jinja'), 'file {{ x }}');
    expect(await shown()).toBe('file 1');
  });

  it('refuses what is no template', async () => {
    await declare([{ name: 'rag', template: '' }]);
    await expect(shown()).rejects.toThrow(/chat templates \[rag\] and none named 'default'/);
    await declare(7);
    await expect(shown()).rejects.toThrow(/neither text nor a list/);
  });
});
