import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineEnvironment } from './definition.ts';
import { listEnvironments, makeEnvironment, registerEnvironment } from './registry.ts';

const definition = (version: number) =>
  defineEnvironment({
    name: 'test-echo',
    version,
    help: 'Says what it was made with.',
    parameters: z.strictObject({ word: z.string().default('hi') }),
    make: ({ word }) => ({
      reset: () => ({ observation: `${word} ${version}` }),
      step: () => ({ reward: 0, done: true }),
    }),
  });

const { signal } = new AbortController();
const observe = async (name: string, parameters?: Record<string, unknown>) => {
  const environment = await makeEnvironment(name, parameters)();
  const task = { id: 't', prompt: '', label: '', metadata: {} };
  return (await environment.reset(task, { seed: 0, signal })).observation;
};

describe('registry', () => {
  it('finds environments by name and version, the newest first', async () => {
    registerEnvironment(definition(2));
    registerEnvironment(definition(10));
    registerEnvironment(definition(1));
    expect(await observe('test-echo')).toBe('hi 10');
    expect(await observe('test-echo@2', { word: 'ho' })).toBe('ho 2');
    const listed = listEnvironments().filter(({ name }) => !name.startsWith('game:'));
    expect(listed.map(({ name, version }) => `${name}@${version}`)).toEqual([
      'calculator@1',
      'code@1',
      'guess-number@1',
      'test-echo@10',
      'test-echo@2',
      'test-echo@1',
    ]);
    expect(() => registerEnvironment(definition(2))).toThrow('test-echo@2 is registered already');
    expect(() => makeEnvironment('test-echo@3')).toThrow('environment test-echo has no version 3; known: 10, 2, 1');
  });

  it('names the nearest of the known', () => {
    expect(() => makeEnvironment('guesnumber')).toThrow(
      /^unknown environment "guesnumber"; known, nearest first: guess-number, /,
    );
    expect(() => makeEnvironment('calc')).toThrow(/nearest first: calculator, code, /);
    expect(() => makeEnvironment('game:Sudoku')).toThrow(/nearest first: game:Sudoku-v0-easy, game:Sudoku-v0-hard, /);
  });

  it('refuses wrong parameters before the first episode', () => {
    expect(() => makeEnvironment('calculator', { calls: -1 })).toThrow(
      /^environment calculator: calls: .*>=0, got -1$/,
    );
    expect(() => makeEnvironment('calculator', { call: 1 })).toThrow(
      'environment calculator: unknown parameter "call"; it has, nearest first: calls',
    );
  });

  it('makes a new environment for every episode', async () => {
    const factory = makeEnvironment('calculator');
    expect(await factory()).not.toBe(await factory());
  });
});
