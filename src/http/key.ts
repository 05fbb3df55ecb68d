import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Whether a key is the right one, in a time that does not depend on where they differ. */
export function sameKey(given: string, key: string): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', key, 'buffer'));
}

/** The key that a request gives, as `authorization: Bearer <key>`; empty when it gives none. */
export function bearerOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return (headers.authorization ?? '').replace(/^Bearer\s+/i, '');
}
