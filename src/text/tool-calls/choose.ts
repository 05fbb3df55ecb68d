import type { ToolDialect } from './dialect.ts';
import { hermes } from './hermes.ts';
import { llamaJson } from './llama.ts';
import { mistral } from './mistral.ts';
import { react } from './react.ts';
import { xml } from './xml.ts';

const DIALECTS: readonly ToolDialect[] = [hermes, llamaJson, mistral, xml, react];

export const TOOL_DIALECTS: readonly string[] = DIALECTS.map(({ name }) => name);

/** @throws Error naming the known dialects */
export function toolDialect(name: string): ToolDialect {
  const found = DIALECTS.find(dialect => dialect.name === name);
  if (found !== undefined) return found;
  throw new Error(`unknown tool dialect ${JSON.stringify(name)}; known: ${TOOL_DIALECTS.join(', ')}`);
}

/**
 * The dialect that a chat template writes calls in: templates show earlier calls in the form the model was trained on.
 * Undefined when the template shows none.
 */
export function dialectOfTemplate(template: string): ToolDialect | undefined {
  if (template.includes('<function=') && template.includes('<parameter=')) return xml;
  if (template.includes('<tool_call>')) return hermes;
  if (template.includes('[TOOL_CALLS]')) return mistral;
  if (template.includes('<|python_tag|>') || /"parameters"\s*:/.test(template)) return llamaJson;
  return undefined;
}
