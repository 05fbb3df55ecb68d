/** An answer that is not 2xx, in the terms of the OpenAI API; each dialect writes it in its own form. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly headers: Readonly<Record<string, string>>;

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
    super(message, { cause: options.cause });
    this.status = status;
    this.type = options.type ?? 'invalid_request_error';
    this.code = options.code ?? null;
    this.headers = options.headers ?? {};
  }
}

export function tooMany(message: string): ApiError {
  return new ApiError(429, message, { type: 'rate_limit_error', headers: { 'retry-after': '1' } });
}
