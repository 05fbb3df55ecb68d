import { writeFileSync } from 'node:fs';
import { COMMANDS } from '../../src/cli/dispatch.ts';
import { optionsPage } from './page.ts';

/** Writes docs/options.md from the declarations of the options: `npm run docs`. */
writeFileSync(new URL('../../docs/options.md', import.meta.url), await optionsPage(COMMANDS));
