import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { ConfigError } from '../config/error.ts';
import { options } from '../options/option.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { environmentFiles } from './init-files.ts';

const initOptions = options({
  'init.kind': { schema: z.enum(['env']), help: 'What to begin: env, an environment with its test', position: 0 },
  'init.name': {
    schema: z
      .string()
      .regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/, 'a name of small letters, digits and hyphens, as in my-env'),
    help: 'Its name, as in my-env',
    position: 1,
  },
  'init.dir': {
    schema: z.string().min(1).optional(),
    help: 'Directory to write into; without it one of the name, here',
    short: 'dir',
  },
  'init.test_runner': {
    schema: z.enum(['node', 'vitest']).optional(),
    help: 'What the test is written for; without it vitest where that is installed, else the one of Node',
  },
});

export const command = defineCommand({
  name: 'init',
  options: initOptions,
  details:
    'Writes files that play, eval, rl and the test runner take as they are. A file that is there is never touched.',
  run: init,
});

/** The command. Writes all of the files or, where one of them is there already, none. */
export async function init({
  values,
  cwd,
  stdout,
}: Pick<CommandContext<typeof initOptions>, 'values' | 'cwd' | 'stdout'>): Promise<undefined> {
  const name = values['init.name'];
  const directory = resolve(cwd, values['init.dir'] ?? name);
  const runner = values['init.test_runner'] ?? (hasVitest(directory) ? 'vitest' : 'node');
  const shown = relative(cwd, directory).split(sep).join('/') || '.';
  const files = Object.entries(environmentFiles(name, shown, runner));
  const there = files.map(([file]) => `${shown}/${file}`).filter(file => existsSync(resolve(cwd, file)));
  if (there.length > 0) {
    throw new ConfigError([
      `${there.join(', ')} ${there.length > 1 ? 'are' : 'is'} there already; choose another --dir`,
    ]);
  }
  await mkdir(directory, { recursive: true });
  // Whoever wrote a file since then keeps it.
  for (const [file, content] of files) await writeFile(join(directory, file), content, { flag: 'wx' });
  stdout.write(
    [
      ...files.map(([file]) => `wrote ${shown}/${file}`),
      '',
      `play it     tokenloop play ${shown}/environment.ts`,
      `measure it  tokenloop eval --env ${shown}/environment.ts`,
      `test it     ${runner === 'vitest' ? `npx vitest run ${shown}` : `npx tsx --test ${shown}/environment.test.ts`}`,
      `train on it tokenloop rl --config ${shown}/rl.yaml`,
      '',
    ].join('\n'),
  );
}

/** Whether vitest is installed beside the directory or above it. */
function hasVitest(directory: string): boolean {
  const above = dirname(directory);
  return existsSync(join(directory, 'node_modules/vitest/package.json')) || (above !== directory && hasVitest(above));
}
