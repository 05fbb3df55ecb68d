#!/usr/bin/env node
import { provideModules } from '../modules/load.ts';
import { dispatch } from './dispatch.ts';
import { OWN_PACKAGE } from './own-package.ts';
import { reportError } from './report.ts';

/** The executable: the only place that reads argv and environment variables, and that sets the exit code. */

const verbose = process.argv.includes('--verbose') || Boolean(process.env.DEBUG);

for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, error => process.exit(reportError(error, process.stderr, verbose)));
}
// A reader that went away (`tokenloop … | head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});

provideModules(OWN_PACKAGE);
const { stdin, stdout, stderr } = process;
const argv = process.argv.slice(2).filter(word => word !== '--verbose');
process.exitCode = await dispatch(argv, {
  stdin,
  stdout,
  stderr,
  cwd: process.cwd(),
  env: process.env,
  signals: process,
  verbose,
});
