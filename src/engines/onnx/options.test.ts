import { expect, it } from 'vitest';
import { resolve } from '../../config/load.ts';
import { adapterFromOptions, adapterOptions, loraFromOptions, loraOptions } from './options.ts';

function from(...argv: string[]) {
  return loraFromOptions(resolve(loraOptions, { argv, cwd: '/' }).values, -1);
}

it('trains all weights unless there is a rank or an adapter', () => {
  expect(from()).toBeUndefined();
  expect(from('--ds.lora.rank', '0')).toBeUndefined();
  expect(from('--ds.lora.dropout', '0')).toBeUndefined();
});

it.each([
  [['--ds.lora.rank', '8'], { rank: 8 }],
  [['--lora_rank', '8', '--lora_alpha', '4'], { rank: 8, alpha: 4 }],
  [['--ds.lora.rank', '8', '--ds.lora.target_modules', 'all-linear'], { rank: 8, targetModules: 'all-linear' }],
  [
    ['--ds.lora.rank', '8', '--ds.lora.target_modules', 'q_proj', 'v_proj'],
    { rank: 8, targetModules: ['q_proj', 'v_proj'] },
  ],
  [['--ds.lora.rank', '8', '--ds.lora.target_modules', 'q_proj'], { rank: 8, targetModules: ['q_proj'] }],
  [['--ds.lora.rank', '8', '--ds.load_in_4bit'], { rank: 8, frozen: 'nf4' }],
  [['--ds.lora.rank', '8', '--load_in_8bit'], { rank: 8, frozen: 'int8' }],
])('reads %j', (argv, lora) => {
  expect(from(...argv)).toEqual({ alpha: undefined, targetModules: undefined, seed: 0xffffffff, ...lora });
});

it('reads an adapter, which needs nothing beside it', () => {
  expect(from('--ds.lora.adapter', 'here')).toEqual({ adapter: 'here' });
  expect(from('--ds.lora.adapter', 'here', '--ds.load_in_4bit')).toEqual({ adapter: 'here', frozen: 'nf4' });
});

it.each([
  [['--ds.lora.alpha', '8'], /set ds\.lora\.rank/],
  [['--ds.lora.target_modules', 'q_proj'], /set ds\.lora\.rank/],
  [['--ds.lora.adapter', 'here', '--ds.lora.rank', '8'], /has its own rank/],
  [['--ds.lora.adapter', 'here', '--ds.lora.alpha', '8'], /has its own rank/],
  [['--ds.lora.dropout', '0.1', '--ds.lora.rank', '8'], /dropout in adapters is not implemented/],
  [['--ds.lora.rank', '-1'], />= 0/],
  [['--ds.lora.rank', '8', '--ds.lora.alpha', '0'], /> 0/],
  [['--ds.load_in_4bit'], /ds\.load_in_4bit keeps weights .* all weights are trained: set ds\.lora\.rank/],
  [['--ds.load_in_8bit', '--ds.load_in_4bit', '--ds.lora.rank', '8'], /are both on/],
])('refuses %j', (argv, message) => {
  expect(() => from(...argv)).toThrow(message);
});

it.each([
  [[], undefined],
  [['--ds.lora.adapter', 'here'], { adapter: 'here' }],
  [['--ds.lora.adapter', 'here', '--ds.load_in_8bit'], { adapter: 'here', frozen: 'int8' }],
  [['--ds.lora.adapter', 'here', '--load_in_4bit'], { adapter: 'here', frozen: 'nf4' }],
])('samples with %j', (argv, lora) => {
  expect(adapterFromOptions(resolve(adapterOptions, { argv, cwd: '/' }).values)).toEqual(lora);
});

it.each([
  [['--ds.load_in_4bit'], /ds\.load_in_4bit keeps what is below an adapter .* set ds\.lora\.adapter/],
  [['--ds.load_in_8bit', '--ds.load_in_4bit', '--ds.lora.adapter', 'x'], /are both on/],
])('refuses to sample with %j', (argv, message) => {
  expect(() => adapterFromOptions(resolve(adapterOptions, { argv, cwd: '/' }).values)).toThrow(message);
});
