import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { COMMANDS } from '../src/cli/dispatch.ts';
import { optionsPage } from '../tools/docs/page.ts';

it('docs/options.md says what the declarations say (npm run docs writes it)', async () => {
  const written = readFileSync(new URL('../docs/options.md', import.meta.url), 'utf8');
  expect(written).toBe(await optionsPage(COMMANDS));
});
