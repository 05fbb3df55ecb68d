import { Refusal } from '../../http/refusal.ts';

/** An answer that is not 2xx, in the terms of the OpenAI API; each dialect writes it in its own form. */
export class ApiError extends Refusal {
  override readonly name = 'ApiError';
  readonly type: string;
  readonly code: string | null;

  constructor(
    status: number,
    message: string,
    options: {
      readonly type?: string;
      readonly code?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
    } = {},
  ) {
    const { headers, cause } = options;
    super(status, message, { cause, ...(headers && { headers }) });
    this.type = options.type ?? 'invalid_request_error';
    this.code = options.code ?? null;
  }
}

export function tooMany(message: string): ApiError {
  return new ApiError(429, message, { type: 'rate_limit_error', headers: { 'retry-after': '1' } });
}
