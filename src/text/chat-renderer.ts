import { delta } from './delta.ts';
import type { Renderer, TextCodec } from './renderer.ts';
import type { ChatTemplate } from './template.ts';

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
    encode: text => codec.encode(text),
    decode: (tokens, options) => codec.decode(tokens, options),
    prompt: (messages, { tools } = {}) =>
      codec.encode(template().render(messages, { tools, addGenerationPrompt: true })),
    extend: ({ context, earlier, answer, added, tools }) =>
      delta(codec, context, template().render([...earlier, answer, ...added], { tools, addGenerationPrompt: true })),
  };
}
