/**
 * Cookies of one rollout with one server. A NeMo Gym session is a signed cookie named after the server's class and
 * instance, and every answer sends it anew; agents pass on those of other servers, so there may be several.
 */
export class CookieJar {
  readonly #values = new Map<string, string>();

  /** Takes over the `Set-Cookie` headers of an answer. Where they hold (path, domain) is not looked at: all of it is one server. */
  keep(headers: readonly string[], now: number): void {
    for (const header of headers) {
      const [pair = '', ...attributes] = header.split(';');
      const at = pair.indexOf('=');
      if (at <= 0) continue;
      const name = pair.slice(0, at).trim();
      if (isOver(attributes, now)) this.#values.delete(name);
      else this.#values.set(name, pair.slice(at + 1).trim());
    }
  }

  get isEmpty(): boolean {
    return this.#values.size === 0;
  }

  /** The `Cookie` header; undefined where there is none to send. */
  get header(): string | undefined {
    if (this.isEmpty) return undefined;
    return [...this.#values].map(([name, value]) => `${name}=${value}`).join('; ');
  }
}

/** RFC 6265, 5.3: max-age goes before expires. */
function isOver(attributes: readonly string[], now: number): boolean {
  const given = new Map(
    attributes.map(attribute => {
      const [name = '', ...value] = attribute.split('=');
      return [name.trim().toLowerCase(), value.join('=').trim()] as const;
    }),
  );
  const age = given.get('max-age');
  if (age !== undefined && /^-?\d+$/.test(age)) return Number(age) <= 0;
  const expires = Date.parse(given.get('expires') ?? '');
  return Number.isFinite(expires) && expires <= now;
}
