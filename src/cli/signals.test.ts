import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { INTERRUPTED, onInterrupt } from './signals.ts';

function setup() {
  const exits: number[] = [];
  const said: string[] = [];
  const source = Object.assign(new EventEmitter(), { exit: (code: number) => void exits.push(code) });
  const interrupt = onInterrupt(source, message => said.push(message));
  return { source, exits, said, interrupt };
}

it.each(['SIGINT', 'SIGTERM'])('asks for an orderly end at the first %s, and exits at the second', signal => {
  const { source, exits, said, interrupt } = setup();
  expect(interrupt.signal.aborted).toBe(false);
  source.emit(signal);
  expect(interrupt.signal.aborted).toBe(true);
  expect(said).toEqual(['interrupted: finishing the step; once more to stop at once']);
  expect(exits).toEqual([]);
  source.emit('SIGINT');
  expect(exits).toEqual([INTERRUPTED]);
});

it('leaves nothing behind', () => {
  const { source, interrupt } = setup();
  interrupt.dispose();
  expect(source.listenerCount('SIGINT') + source.listenerCount('SIGTERM')).toBe(0);
});
