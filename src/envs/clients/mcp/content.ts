import { z } from 'zod';

/** What `tools/call` answers, as far as it is read. */
export const callResult = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })).default([]),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional(),
});
export type CallResult = z.output<typeof callResult>;

/**
 * A result as the text that the policy reads. What is no text (images, audio, binary resources) is said in a bracket:
 * tool messages of the embedded models carry text.
 */
export function textOf({ content, structuredContent }: CallResult): string {
  if (content.length === 0 && structuredContent !== undefined) return JSON.stringify(structuredContent);
  return content.map(partOf).join('\n');
}

function partOf(part: CallResult['content'][number]): string {
  const { type, text, data, mimeType, resource, uri } = part;
  if (type === 'text' && typeof text === 'string') return text;
  if (type === 'resource' && typeof resource === 'object' && resource !== null) {
    const { text, uri, mimeType, blob } = resource as Record<string, unknown>;
    return typeof text === 'string' ? text : `[resource ${uri}${described(mimeType, blob)}]`;
  }
  return `[${type}${typeof uri === 'string' ? ` ${uri}` : ''}${described(mimeType, data)}]`;
}

function described(mimeType: unknown, base64: unknown): string {
  const type = typeof mimeType === 'string' ? ` ${mimeType}` : '';
  return typeof base64 === 'string' ? `${type}, ${Buffer.byteLength(base64, 'base64')} bytes` : type;
}
