import { z } from 'zod';
import { ApiError } from '../api-error.ts';
import type { GivenAnswer, GivenIds } from './contracts.ts';

/** Pieces that the dialects share. */

export const part = z.looseObject({ type: z.string(), text: z.string().optional() });
export const content = z.union([z.string(), z.array(part)], { error: 'expected text or an array of parts' });

export const toolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "expected 1 to 64 letters, digits, '_' or '-'");
/** JSON Schema of an object; one without a type says nothing else. */
export const toolParameters = z.looseObject({ type: z.literal('object').optional() });

const TEXT_PARTS = ['text', 'input_text', 'output_text', 'refusal'];

/** Text of a content that may be split into parts. */
export function textOf(given: string | readonly { readonly type: string; readonly text?: string | undefined }[]) {
  if (typeof given === 'string') return given;
  return given
    .map(({ type, text }) => {
      if (text !== undefined && TEXT_PARTS.includes(type)) return text;
      throw new ApiError(400, `a content part of type ${JSON.stringify(type)}: only text can be recorded`);
    })
    .join('');
}

export function toolOf(name: string, description: string | null | undefined, parameters: object | null | undefined) {
  const schema = { type: 'object', properties: {}, ...parameters };
  return { type: 'function', function: { name, description: description ?? '', parameters: schema } } as const;
}

export function tokenLogprobs(tokens: GivenAnswer['tokens']) {
  const one = ({ token, logprob }: { token: string; logprob: number }) => ({
    token,
    logprob,
    bytes: [...Buffer.from(token)],
  });
  return tokens.map(given => ({ ...one(given), top_logprobs: given.top.map(one) }));
}

/** As NeMo Gym writes it: on the last item of an answer, or on its message. */
export function bundleOf({ prompt, answer, logprobs }: GivenIds) {
  return {
    prompt_token_ids: [...prompt],
    generation_token_ids: [...answer],
    generation_log_probs: [...logprobs],
  };
}
