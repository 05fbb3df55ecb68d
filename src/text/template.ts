import { Template } from '@huggingface/jinja';
import { messageOf } from '../episode/failure.ts';
import type { Message } from '../episode/task.ts';
import { readJson, readText } from './files.ts';
import { dialectOfTemplate } from './tool-calls/choose.ts';
import type { ToolDialect } from './tool-calls/dialect.ts';

/** A conversation as the text the policy sees. */
export interface ChatTemplate {
  /**
   * `addGenerationPrompt` ends the text where the policy answers. Throws when the template refuses the conversation.
   */
  render(
    messages: readonly Message[],
    options?: { readonly tools?: readonly unknown[] | undefined; readonly addGenerationPrompt?: boolean },
  ): string;
  /** How it writes tool calls; undefined when it shows no tools. */
  readonly toolDialect?: ToolDialect | undefined;
}

/**
 * Parses a Jinja chat template of a Hugging Face checkpoint once; rendering gives what Transformers'
 * `apply_chat_template(tokenize=False)` gives. `variables` are the names a template may use beside messages and tools:
 * `bos_token`, `eos_token` and the other special tokens, or a model's own switches (`enable_thinking`).
 */
export function chatTemplate(source: string, variables: Readonly<Record<string, unknown>> = {}): ChatTemplate {
  let template: Template;
  try {
    template = new Template(source);
  } catch (error) {
    throw new Error(`the chat template is not valid Jinja: ${messageOf(error)}`, { cause: error });
  }
  return {
    toolDialect: dialectOfTemplate(source),
    render(messages, { tools, addGenerationPrompt = false } = {}) {
      try {
        return template.render({
          ...variables,
          messages: messages.map(withParsedArguments),
          // Templates ask `tools is none` or just `if tools`; an empty list would pass for tools in some of them.
          tools: tools === undefined || tools.length === 0 ? null : tools,
          add_generation_prompt: addGenerationPrompt,
        });
      } catch (error) {
        const roles = messages.map(message => message.role).join(', ');
        throw new Error(
          `the chat template could not render a conversation with the roles [${roles}]: ${messageOf(error)}`,
          { cause: error },
        );
      }
    },
  };
}

/**
 * The chat template of a checkpoint directory: `chat_template.jinja`, or `chat_template` of `tokenizer_config.json`,
 * which is one template or a list of named ones (`default`, and `tool_use` for conversations with tools).
 * Undefined when there is none.
 */
export async function loadChatTemplate(
  directory: string,
  variables: Readonly<Record<string, unknown>> = {},
): Promise<ChatTemplate | undefined> {
  const file = await readText(directory, 'chat_template.jinja');
  if (file !== undefined) return chatTemplate(file, variables);
  const declared = (await readJson(directory, 'tokenizer_config.json'))?.chat_template;
  if (declared === undefined || declared === null) return undefined;
  if (typeof declared === 'string') return chatTemplate(declared, variables);
  const named = new Map(namedTemplates(declared, directory).map(t => [t.name, chatTemplate(t.template, variables)]));
  const usual = named.get('default');
  if (usual === undefined) {
    throw new Error(
      `${directory} has the chat templates [${[...named.keys()].join(', ')}] and none named 'default'; write the one ` +
        'to use into chat_template.jinja',
    );
  }
  return {
    toolDialect: (named.get('tool_use') ?? usual).toolDialect,
    render(messages, options = {}) {
      const hasTools = options.tools !== undefined && options.tools.length > 0;
      return ((hasTools ? named.get('tool_use') : undefined) ?? usual).render(messages, options);
    },
  };
}

function namedTemplates(declared: unknown, directory: string): { name: string; template: string }[] {
  const isNamed = (entry: unknown): entry is { name: string; template: string } =>
    typeof entry === 'object' &&
    entry !== null &&
    'name' in entry &&
    typeof entry.name === 'string' &&
    'template' in entry &&
    typeof entry.template === 'string';
  if (Array.isArray(declared) && declared.every(isNamed)) return declared;
  throw new Error(
    `chat_template in ${directory}/tokenizer_config.json is neither text nor a list of {name, template} objects`,
  );
}

/** Templates print arguments as JSON objects; clients of the OpenAI API send them as JSON text. */
function withParsedArguments(message: Message): Message {
  if (message.tool_calls === undefined) return message;
  const calls = message.tool_calls.map(call => {
    const { arguments: given } = call.function;
    return { ...call, function: { ...call.function, arguments: typeof given === 'string' ? parsed(given) : given } };
  });
  return { ...message, tool_calls: calls };
}

/** Text that is no JSON object is what the model wrote, and is shown as it is. */
function parsed(text: string): Readonly<Record<string, unknown>> | string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : text;
  } catch {
    return text;
  }
}
