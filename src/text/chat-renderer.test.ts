import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadRenderer } from './chat-renderer.ts';

const goldens = fileURLToPath(new URL('../../tests/goldens/text/', import.meta.url));

describe('loadRenderer', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'renderer-'));
    await cp(join(goldens, 'chars'), directory, { recursive: true });
  });
  afterEach(() => rm(directory, { recursive: true }));

  const write = (name: string, value: unknown) => writeFile(join(directory, name), JSON.stringify(value));

  it('puts tokenizer, template and stop tokens together', async () => {
    const renderer = await loadRenderer(directory);
    expect(renderer.stopTokens).toEqual([2]);
    expect(renderer.vocabularySize).toBe(50);
    const messages = [
      { role: 'user', content: '1+1' },
      { role: 'assistant', content: '2' },
      { role: 'user', content: '2+2' },
    ];
    expect(renderer.decode(renderer.prompt(messages), { special: true })).toBe('1+1=2<eos>2+2=');
  });

  it('hands its variables to the template', async () => {
    await writeFile(
      join(directory, 'chat_template.jinja'),
      '{{ "thinking" if enable_thinking else "direct" }}{{ bos_token }}',
    );
    const shown = async (templateVariables: Record<string, unknown>) => {
      const renderer = await loadRenderer(directory, { templateVariables });
      return renderer.decode(renderer.prompt([]), { special: true });
    };
    expect(await shown({})).toBe('direct<bos>');
    expect(await shown({ enable_thinking: true })).toBe('thinking<bos>');
  });

  it('collects every stop token that the checkpoint names', async () => {
    await write('generation_config.json', { eos_token_id: [1, 2] });
    await write('config.json', { eos_token_id: 0 });
    expect((await loadRenderer(directory)).stopTokens).toEqual([1, 2, 0]);
    await write('config.json', { eos_token_id: null });
    expect((await loadRenderer(directory)).stopTokens).toEqual([1, 2]);
    await write('config.json', { eos_token_id: '<eos>' });
    await expect(loadRenderer(directory)).rejects.toThrow(/eos_token_id in .*config\.json is "<eos>"/);
  });

  it('refuses an end of sequence that is no token', async () => {
    await write('tokenizer_config.json', { eos_token: '<end>' });
    await expect(loadRenderer(directory)).rejects.toThrow(/eos_token "<end>" .* is not in tokenizer\.json/);
  });

  it('encodes and decodes without a chat template, and says what a conversation needs', async () => {
    await rm(join(directory, 'chat_template.jinja'));
    const renderer = await loadRenderer(directory);
    expect(renderer.decode(renderer.encode('1+1='))).toBe('1+1=');
    expect(() => renderer.prompt([{ role: 'user', content: '1' }])).toThrow(/no chat template.*chat_template\.jinja/);
  });
});
