import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../episode/failure.ts';

/** Why the hub did not give what was asked for. */
export class HubError extends Error {
  override readonly name = 'HubError';
  /** True when no answer came at all: what the cache holds may serve instead. */
  readonly unreachable: boolean;
  /** True when the repository is there and has no such revision. */
  readonly noRevision: boolean;

  constructor(
    message: string,
    options: { readonly unreachable?: boolean; readonly noRevision?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.unreachable = options.unreachable ?? false;
    this.noRevision = options.noRevision ?? false;
  }
}

/** One repository of one hub, and how patiently it is asked for. */
export interface HubAccess {
  readonly kind: 'model' | 'dataset';
  /** `organisation/name` */
  readonly model: string;
  readonly revision: string;
  /** Without a slash at the end. */
  readonly endpoint: string;
  readonly token: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** Requests for one thing at most. */
  readonly attempts: number;
  /** Before the second attempt; doubles with every further one. */
  readonly delayMs: number;
  /** Longest silence of the hub. */
  readonly timeoutMs: number;
}

/** A hub that asks for more patience than this is believed, not waited for. */
const LONGEST_WAIT_MS = 60_000;

/** Network failures that a second attempt would only repeat. */
const LASTING = ['ENOTFOUND', 'ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'ERR_INVALID_URL'];

/**
 * `fetch` for one model: sends the token to the hub only, repeats what failed in passing (429, 5xx, broken
 * connections), and throws a HubError that says what to do for every other answer that is not a success. Answers are
 * `short`, and must arrive whole before the time is up, or `long`: then only their beginning must.
 */
export function hubFetch(access: HubAccess, answers: 'short' | 'long' = 'short'): typeof fetch {
  const { endpoint, token, signal, attempts, delayMs, timeoutMs } = access;
  return async (target, init) => {
    const url = new URL(target instanceof Request ? target.url : target);
    const headers = new Headers(init?.headers);
    if (token !== undefined && url.origin === new URL(endpoint).origin) headers.set('authorization', `Bearer ${token}`);
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      const watch = silence(timeoutMs, signal);
      const answer = await attemptOnce(url, { ...init, headers, signal: watch.signal });
      signal?.throwIfAborted();
      const succeeded = answer instanceof Response && answer.ok;
      if (!succeeded || answers === 'long') watch.end();
      if (succeeded) return answer;
      const wait =
        answer instanceof Response ? patience(answer) : watch.signal.aborted || isLasting(answer) ? undefined : 0;
      if (wait === undefined || wait > LONGEST_WAIT_MS || attempt >= attempts) {
        throw answer instanceof Response ? refusal(answer, access) : unreachable(answer, access);
      }
      if (answer instanceof Response) await answer.body?.cancel();
      await delay(Math.max(wait, delayMs * 2 ** (attempt - 1)), undefined, { ...(signal && { signal }) });
    }
  };
}

async function attemptOnce(url: URL, init: RequestInit): Promise<Response | Error> {
  try {
    return await fetch(url, init);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

export interface Silence {
  readonly signal: AbortSignal;
  /** Something was heard: the time starts again. */
  heard(): void;
  end(): void;
}

/** A signal that aborts when nothing is heard for so long, or with `outer`. */
export function silence(ms: number, outer: AbortSignal | undefined): Silence {
  const controller = new AbortController();
  const { signal } = controller;
  const timer = setTimeout(() => controller.abort(new Error(`nothing was heard for ${ms / 1000} s`)), ms).unref();
  const end = () => {
    clearTimeout(timer);
    outer?.removeEventListener('abort', forward);
  };
  const forward = () => controller.abort(outer?.reason);
  outer?.addEventListener('abort', forward, { once: true, signal });
  if (outer?.aborted) forward();
  return { signal, heard: () => timer.refresh(), end };
}

/** Milliseconds until the request may be repeated; undefined when the answer is final. */
function patience({ status, headers }: Response): number | undefined {
  if (status !== 429 && status < 500) return undefined;
  const after = headers.get('retry-after');
  if (after === null) return 0;
  const seconds = Number(after);
  const wait = Number.isNaN(seconds) ? Date.parse(after) - Date.now() : 1000 * seconds;
  return Math.max(0, wait || 0);
}

function refusal(answer: Response, { kind, model, revision, endpoint, token, attempts }: HubAccess): HubError {
  const { status, headers } = answer;
  const code = headers.get('x-error-code');
  const access =
    token === undefined ? 'set HF_TOKEN to a token that may read it' : 'HF_TOKEN is set: use one that may read it';
  const say = (message: string) => new HubError(message);
  if (code === 'GatedRepo') {
    return say(
      `${model} is gated (${status}): accept its terms at ${endpoint}/${kind === 'dataset' ? 'datasets/' : ''}${model}, and ${access}`,
    );
  }
  if (status === 401 || status === 403) {
    return say(`${endpoint} does not show ${model} (${status}): the name is wrong or it is private; ${access}`);
  }
  if (status === 404 && code === 'RevisionNotFound') {
    const message = `${model} has no revision ${revision} at ${endpoint}; name a branch, a tag or a commit`;
    return new HubError(message, { noRevision: true });
  }
  if (status === 404 && code === 'EntryNotFound') {
    return say(`${model} has no ${new URL(answer.url).pathname.split('/').at(-1)} at ${endpoint}, though it lists it`);
  }
  if (status === 404) return say(`there is no ${kind} ${model} at ${endpoint} (404); check the name`);
  if (status === 429) {
    const seconds = Math.ceil((patience(answer) ?? 0) / 1000);
    const asked = seconds > 0 ? `; it asks to wait ${seconds} s` : '';
    return say(
      `${endpoint} takes no more requests for now (429)${asked}: try again later${token === undefined ? ', or set HF_TOKEN, which raises the limit' : ''}`,
    );
  }
  if (status >= 500) {
    return say(`${endpoint} failed (${status}) at each of ${attempts} attempts; try again later, or ${ELSEWHERE}`);
  }
  return say(`${endpoint} answered ${status} to a request for ${model}; check HF_ENDPOINT`);
}

const ELSEWHERE = 'set HF_ENDPOINT to a mirror, or give the directory of a copy';

function isLasting(error: Error): boolean {
  return LASTING.includes(codeOf(error) ?? '');
}

/** Of `fetch failed`, whose cause is what happened; several addresses may have failed. */
function codeOf(error: Error): string | undefined {
  const cause = error.cause as { code?: string; errors?: { code?: string }[] } | undefined;
  return cause?.code ?? cause?.errors?.[0]?.code;
}

function unreachable(error: Error, { model, endpoint }: HubAccess): HubError {
  const cause = error.cause === undefined ? '' : messageOf(error.cause) || codeOf(error);
  const what = cause ? `${error.message}: ${cause}` : error.message;
  return new HubError(`${endpoint} cannot be reached for ${model} (${what}); check the network, ${ELSEWHERE}`, {
    unreachable: true,
    cause: error,
  });
}
