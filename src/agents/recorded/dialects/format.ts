import { z } from 'zod';
import type { AnswerFormat } from './contracts.ts';

/** What `response_format` and `text.format` may ask for; the schema lies in `json_schema` in the one, beside in the other. */
export const format = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    json_schema: z.looseObject({ schema: z.looseObject({}).nullish() }).nullish(),
    schema: z.looseObject({}).nullish(),
  }),
]);

/** Whether a text is what was asked for; undefined where any text is. */
export function formatOf(name: string, given: z.infer<typeof format> | null | undefined): AnswerFormat | undefined {
  if (given === undefined || given === null || given.type === 'text') return undefined;
  const schema = given.type === 'json_schema' ? (given.json_schema?.schema ?? given.schema) : undefined;
  const accepts = schemaOf(schema ?? undefined) ?? z.looseObject({});
  return {
    name,
    fits(text) {
      try {
        return accepts.safeParse(JSON.parse(text)).success;
      } catch {
        return false; // it is no JSON
      }
    },
  };
}

function schemaOf(schema: Readonly<Record<string, unknown>> | undefined): z.ZodType | undefined {
  try {
    return schema && z.fromJSONSchema(schema);
  } catch {
    return undefined; // a schema that cannot be read asks for JSON only
  }
}
