import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { ConfigError } from '../config/error.ts';
import { options } from '../options/option.ts';
import { type Command, type CommandContext, defineCommand } from './command.ts';
import { COMMANDS, type Commands, dispatch, version } from './dispatch.ts';

const declared = options({ 'train.seed': { schema: z.number().default(42), help: 'Seed', aliases: ['seed'] } });

function setup(run: Command<typeof declared>['run'] = async () => undefined, verbose = false) {
  const out: string[] = [];
  const err: string[] = [];
  const exit = vi.fn();
  const io = {
    stdin: Readable.from([]),
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: (text: string) => err.push(text) },
    cwd: '/',
    signals: Object.assign(new EventEmitter(), { exit }),
    verbose,
  };
  const commands: Commands = {
    train: {
      summary: 'Trains',
      load: async () => ({ command: defineCommand({ name: 'train', options: declared, run }) }),
    },
    broken: {
      summary: 'Cannot load',
      load: async () => {
        throw new Error('no engine');
      },
    },
  };
  const call = async (...argv: string[]) => {
    const code = await dispatch(argv, io, commands);
    return { code, out: out.join(''), err: err.join('') };
  };
  return { call, io };
}

describe('dispatch', () => {
  it('gives a command its values and notices, and 0 back', async () => {
    let seen: CommandContext<typeof declared> | undefined;
    const { call } = setup(async context => {
      seen = context;
      return undefined;
    });
    expect(await call('train', '--seed', '7')).toEqual({
      code: 0,
      out: '',
      err: 'tokenloop: --seed is an older name of train.seed; both are understood\n',
    });
    expect(seen?.values).toEqual({ 'train.seed': 7 });
  });

  it('passes the exit code of a command on', async () => {
    expect((await setup(async () => 1).call('train')).code).toBe(1);
  });

  it('shows help without loading any command', async () => {
    for (const argv of [[], ['--help'], ['-h'], ['help']]) {
      const { code, out } = await setup().call(...argv);
      expect(code).toBe(0);
      expect(out).toContain('train   Trains\n  broken  Cannot load\n');
    }
    expect((await setup().call('--version')).out).toBe(`${version()}\n`);
  });

  it('shows the options of a command', async () => {
    const { code, out } = await setup().call('train', '--help');
    expect(code).toBe(0);
    expect(out).toContain('tokenloop train: Trains\n');
    expect(out).toContain('--train.seed <number>\n      Seed. (default 42)');
  });

  it('names the nearest command', async () => {
    expect(await setup().call('trian')).toEqual({
      code: 2,
      out: '',
      err: 'tokenloop: unknown command trian; did you mean train?\n',
    });
    expect((await setup().call('quantum')).err).toBe(
      'tokenloop: unknown command quantum; tokenloop --help lists the commands\n',
    );
    expect((await setup().call('constructor')).code).toBe(2);
  });

  it.each([
    ['bad input', new ConfigError(['a is 1; expected 2', 'b is missing']), 2],
    ['a failure', new Error('disk full'), 1],
    ['something that is no error', 'odd', 1],
  ])('answers %s with its message and exit code, without a stack', async (_, error, code) => {
    const { call } = setup(async () => {
      throw error;
    });
    const lines = (error instanceof Error ? error.message : error).split('\n').map(line => `tokenloop: ${line}\n`);
    expect(await call('train')).toEqual({ code, out: '', err: lines.join('') });
  });

  it('shows stacks and causes when asked', async () => {
    const failing = async () => {
      throw new Error('outer', { cause: new Error('inner') });
    };
    const { err } = await setup(failing, true).call('train');
    expect(err).toMatch(/^tokenloop: outer\nError: outer\n +at [\s\S]*\ncaused by: Error: inner\n +at /);
  });

  it('reports bad options and commands that cannot be loaded', async () => {
    expect(await setup().call('train', '--train.sed=1')).toMatchObject({
      code: 2,
      err: 'tokenloop: --train.sed: unknown option; did you mean train.seed?\n',
    });
    expect(await setup().call('broken')).toMatchObject({ code: 1, err: 'tokenloop: no engine\n' });
  });

  it('exits 130 after an interrupt, whether the command returns or rejects with it', async () => {
    for (const end of ['return', 'reject']) {
      const { call, io } = setup(async ({ interrupt }) => {
        io.signals.emit('SIGINT');
        if (end === 'reject') interrupt.signal.throwIfAborted();
        return undefined;
      });
      expect(await call('train')).toMatchObject({ code: 130, err: expect.stringContaining('finishing the step') });
      expect(io.signals.listenerCount('SIGINT')).toBe(0);
    }
  });

  it('still reports a failure that an interrupt did not cause', async () => {
    const { call, io } = setup(async () => {
      io.signals.emit('SIGINT');
      throw new Error('disk full');
    });
    expect(await call('train')).toMatchObject({ code: 1, err: expect.stringContaining('disk full') });
  });
});

it.each(Object.entries(COMMANDS))('%s is declared under its name', async (name, { load }) => {
  expect((await load()).command.name).toBe(name);
});
