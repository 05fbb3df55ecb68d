import { messageOf } from '../episode/failure.ts';

/** A request that no repetition will mend: the server understood and refused. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

export interface RequestOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** Aborts the request; a request that takes longer than 30 s is aborted anyway. */
  readonly signal?: AbortSignal | undefined;
  /** Never shown, whatever an answer repeats. */
  readonly secrets: readonly string[];
  readonly method?: 'POST' | 'GET' | 'PATCH';
}

const TIMEOUT_MS = 30_000;

/**
 * Sends JSON and gives the JSON that comes back.
 * @throws RefusedError for a status of 4xx but 408 and 429; an Error that says what happened for everything else
 */
export async function requestJson(url: string, options: RequestOptions): Promise<unknown> {
  const { headers, body, signal, secrets, method = 'POST' } = options;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(url, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // Credentials must not follow to another place.
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const text = await response.text();
    if (response.ok) return text === '' ? {} : JSON.parse(text);
    const said = `${response.status} ${response.statusText}: ${text.slice(0, 300)}`;
    const refused = response.status >= 400 && response.status < 500 && ![408, 429].includes(response.status);
    throw refused ? new RefusedError(said) : new Error(said);
  } catch (error) {
    const { cause } = error as Error;
    const why = cause instanceof Error ? `${messageOf(error)} (${messageOf(cause)})` : messageOf(error);
    const message = withoutSecrets(`${method} ${url}: ${why}`, secrets);
    throw error instanceof RefusedError ? new RefusedError(message) : new Error(message);
  }
}

/** Text in which each secret, and its base64 form, is replaced by `***`. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter(secret => secret !== '')
    .flatMap(secret => [secret, Buffer.from(secret).toString('base64')])
    .reduce((shown, secret) => shown.replaceAll(secret, '***'), text);
}
