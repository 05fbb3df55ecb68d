import { describe, expect, it } from 'vitest';
import { CookieJar } from './cookie-jar.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
function jarOf(...headers: string[]): CookieJar {
  const jar = new CookieJar();
  jar.keep(headers, NOW);
  return jar;
}

describe('a cookie jar', () => {
  it('keeps several names, and the last value of each', () => {
    const jar = jarOf('a=1; path=/; httponly', 'b=x=y.z; Max-Age=1209600; samesite=lax');
    jar.keep(['a=2'], NOW);
    expect(jar.header).toBe('a=2; b=x=y.z');
  });

  it.each(['a=; Max-Age=0', 'a=null; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT; httponly'])(
    'lets go: %s',
    header => {
      const jar = jarOf('a=1', 'b=2');
      jar.keep([header], NOW);
      expect(jar.header).toBe('b=2');
    },
  );

  it('goes by max-age where there is an older date, too', () => {
    expect(jarOf('a=1; expires=Thu, 01 Jan 1970 00:00:00 GMT; max-age=5').header).toBe('a=1');
  });

  it('is empty before anything, and after what is no cookie', () => {
    expect(jarOf().isEmpty).toBe(true);
    expect(jarOf('nonsense', '=1', '').header).toBeUndefined();
  });
});
