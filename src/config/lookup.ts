import { nearest } from '../options/nearest.ts';
import type { Options } from '../options/option.ts';
import { foreign } from './foreign.ts';

/** The declared name that a written name stands for, or the sentence that says why there is none. */
export function lookup(options: Options, written: string): { readonly name: string } | { readonly fault: string } {
  if (Object.hasOwn(options, written)) return { name: written };
  for (const [name, { aliases, short }] of Object.entries(options)) {
    if (written === short || aliases?.includes(written)) return { name };
  }
  const answer = foreign(written);
  if (answer !== undefined) return { fault: `not an option here: ${answer}` };
  const close = nearest(written, Object.keys(options));
  return { fault: `unknown option; ${close ? `did you mean ${close}?` : '--help lists the options'}` };
}

/** Whether `written` names an option, now or by an older name. */
export function isDeclared(options: Options, written: string): boolean {
  return 'name' in lookup(options, written);
}
