/** A request that brought no answer that can be used. */
export class HttpFailure extends Error {
  /** Whether a second attempt, here or at another server, may do better. */
  readonly retryable: boolean;
  /** The server asks to wait so long, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The server is well, and what it said is of no use: a second attempt need not wait. */
  readonly answered: boolean;

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly retryable: boolean;
      readonly retryAfterMs?: number | undefined;
      readonly answered?: boolean | undefined;
    },
  ) {
    super(message, options);
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs;
    this.answered = options.answered ?? false;
  }
}

export interface PostOptions {
  /** Sent as bearer token; it appears in no message. */
  readonly key?: string | undefined;
  /** Milliseconds until the whole answer must be there. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Posts JSON and gives the JSON that comes back.
 * @throws HttpFailure that says what came instead; the signal's reason when it aborts
 */
export async function postJson(url: string, body: unknown, options: PostOptions): Promise<unknown> {
  const { key, timeoutMs, signal } = options;
  const deadline = AbortSignal.timeout(timeoutMs);
  const failed = (
    message: string,
    retryable: boolean,
    more: ErrorOptions & { retryAfterMs?: number | undefined } = {},
  ) => new HttpFailure(`${url}: ${message}`, { retryable, ...more });
  let text: string;
  let response: Response;
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
      body: JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    });
    text = await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    if (deadline.aborted) throw failed(`no answer within ${timeoutMs} ms`, true, { cause: error });
    throw failed(`cannot be reached (${reasonOf(error)})`, true, { cause: error });
  }
  const { status, headers } = response;
  // A server may repeat what it was sent.
  const said = () => preview(key ? text.replaceAll(key, '(key)') : text);
  if (!response.ok) {
    const retryable = status === 408 || status === 429 || status >= 500;
    throw failed(`${status} ${said()}`.trim(), retryable, { retryAfterMs: waitOf(headers.get('retry-after')) });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const type = headers.get('content-type') ?? 'no content type';
    throw failed(`answered with ${type}, which is not JSON: ${said()}`, true, { cause: error });
  }
}

/** Network errors have their cause inside. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as {
    readonly cause?: { readonly code?: string; readonly message?: string };
  } & Error;
  return cause?.code ?? cause?.message ?? message;
}

/** `retry-after` in milliseconds; undefined where it is absent or a date. */
function waitOf(header: string | null): number | undefined {
  return header !== null && /^\d+$/.test(header) ? Number(header) * 1000 : undefined;
}

function preview(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 120 ? `${line.slice(0, 117)}...` : line;
}
