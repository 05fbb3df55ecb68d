import { answerTokens } from './answer.ts';
import { delta } from './delta.ts';
import { readJson } from './files.ts';
import type { Renderer, TextCodec } from './renderer.ts';
import { type ChatTemplate, loadChatTemplate } from './template.ts';
import { loadTokenizer, type Tokenizer } from './tokenizer.ts';

/**
 * Tokenizer, chat template and stop tokens of a checkpoint directory. Answers end with any id that
 * `generation_config.json`, `config.json` or `tokenizer_config.json` name as the end of sequence.
 * `templateVariables` are handed to the chat template beside the special tokens.
 */
export async function loadRenderer(
  directory: string,
  options: { readonly templateVariables?: Readonly<Record<string, unknown>> } = {},
): Promise<Renderer> {
  const tokenizer = await loadTokenizer(directory);
  const variables = { ...tokenizer.specialTokens, ...options.templateVariables };
  return chatRenderer({
    codec: tokenizer,
    template: await loadChatTemplate(directory, variables),
    stopTokens: await stopTokens(directory, tokenizer),
  });
}

async function stopTokens(directory: string, tokenizer: Tokenizer): Promise<number[]> {
  const ids = new Set<number>();
  for (const name of ['generation_config.json', 'config.json']) {
    const declared = (await readJson(directory, name))?.eos_token_id ?? [];
    for (const id of Array.isArray(declared) ? declared : [declared]) {
      if (!Number.isInteger(id) || id < 0) {
        throw new Error(`eos_token_id in ${directory}/${name} is ${JSON.stringify(declared)}; token ids are expected`);
      }
      ids.add(id);
    }
  }
  const name = tokenizer.specialTokens.eos_token;
  if (name !== undefined) {
    const id = tokenizer.tokenId(name);
    if (id === undefined) {
      throw new Error(
        `eos_token ${JSON.stringify(name)} of ${directory}/tokenizer_config.json is not in tokenizer.json`,
      );
    }
    ids.add(id);
  }
  return [...ids];
}

/** A renderer of its parts. Without a template the renderer encodes and decodes but knows no conversations. */
export function chatRenderer(parts: {
  readonly codec: TextCodec;
  readonly template?: ChatTemplate | undefined;
  readonly stopTokens: readonly number[];
}): Renderer {
  const { codec, stopTokens } = parts;
  const template = () => {
    if (parts.template !== undefined) return parts.template;
    throw new Error(
      'this checkpoint has no chat template, so messages cannot be rendered; add a chat_template.jinja to its ' +
        'directory, or give prompts and feedback as text',
    );
  };
  return {
    vocabularySize: codec.vocabularySize,
    stopTokens,
    toolDialect: parts.template?.toolDialect,
    encode: text => codec.encode(text),
    decode: (tokens, options) => codec.decode(tokens, options),
    prompt: (messages, { tools } = {}) =>
      codec.encode(template().render(messages, { tools, addGenerationPrompt: true })),
    answer: ({ context, earlier, answer, tools }) => {
      const whole = template().render([...earlier, answer], { tools });
      if (answer.tool_calls !== undefined && answer.tool_calls.length > 0) {
        const { tool_calls: _, ...bare } = answer;
        if (template().render([...earlier, bare], { tools }) === whole) {
          throw new Error(
            'the chat template of the model does not show the tool_calls of an answer, so they cannot be learned; ' +
              'write the call into the content of the message, or use a model whose template shows calls',
          );
        }
      }
      const prompt = template().render(earlier, { tools, addGenerationPrompt: true });
      return answerTokens(codec, stopTokens, { after: context.at(-1), prompt, whole, content: answer.content });
    },
    extend: ({ context, earlier, answer, added, tools }) =>
      delta(codec, context, template().render([...earlier, answer, ...added], { tools, addGenerationPrompt: true })),
  };
}
