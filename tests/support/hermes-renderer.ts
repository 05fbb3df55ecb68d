import { byteRenderer } from '../../src/testing/byte-tokenizer.ts';
import { chatRenderer } from '../../src/text/chat-renderer.ts';
import { chatTemplate } from '../../src/text/template.ts';

const bytes = byteRenderer();

/** A template that shows tools, calls and results as Qwen's does, over bytes. */
export const hermesRenderer = chatRenderer({
  codec: bytes,
  stopTokens: bytes.stopTokens,
  template: chatTemplate(
    '{% if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool.function.name }} {% endfor %}as <tool_call><|im_end|>\n{% endif %}' +
      '{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}' +
      '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  ),
});
