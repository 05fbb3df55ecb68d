import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gemEnvironment } from '../src/envs/clients/gem-bridge/environment.ts';
import type { EnvironmentFactory } from '../src/envs/contracts.ts';
import { makeEnvironment } from '../src/envs/registry.ts';
import { root } from './support/process.ts';

/**
 * python/gem_bridge.py. Where GEM is not installed a stand-in takes its place; GEM_PYTHON names a Python that has it
 * (pip install gem-llm), for the tests with the package itself.
 */

const python = process.env.GEM_PYTHON ?? 'python3';
const hasPython = can(['-c', 'import numpy']);
const hasGem = can(['-c', 'import gem']);
const task = { id: 't', prompt: '', label: '', metadata: {} };
const { signal } = new AbortController();

function can(args: string[]): boolean {
  try {
    execFileSync(python, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function play(factory: EnvironmentFactory, seed: number, answers: readonly string[]) {
  const environment = await factory();
  const seen: unknown[] = [await environment.reset(task, { seed, signal })];
  for (const [turn, actionText] of answers.entries()) {
    const action = { actionText, actionTokens: new Int32Array(), observationText: '', label: '', task, turn, signal };
    const result = await environment.step({ ...action, finishReason: 'stop' });
    seen.push(result);
    if (result.done) break;
  }
  await environment.close?.();
  return seen as [{ observation: unknown }, ...{ reward: number; done: boolean; feedback: unknown }[]];
}

describe.skipIf(!hasPython)(
  `the bridge, with a stand-in for GEM${hasPython ? '' : ' (no Python with NumPy here)'}`,
  () => {
    const path = join(root, 'tests/support/python');
    const standIn = (id = 'game:Draws', kwargs = {}) =>
      gemEnvironment({
        id,
        kwargs,
        processes: 1,
        bridge: ['env', `PYTHONPATH=${path}`, python, join(root, 'python/gem_bridge.py')],
      });

    it('gives each of its sessions random numbers of its own', async () => {
      const alone = await play(standIn(), 3, ['a', 'b']);
      const factory = standIn();
      const [first, other, second] = await Promise.all([3, 4, 3].map(seed => play(factory, seed, ['a', 'b'])));
      expect(first).toEqual(alone);
      expect(second).toEqual(alone);
      expect(other).not.toEqual(alone);
      expect(alone[0]).toEqual({ observation: [{ role: 'user', content: expect.stringMatching(/^<start \d+\n>$/) }] });
      expect(alone[2]).toMatchObject({ reward: 0.5, done: false });
    });

    it('keeps what environments print apart, passes arguments on, and ends at the end', async () => {
      const seen = await play(standIn('game:Draws', { limit: 2 }), 1, ['print', 'b', 'c']);
      expect(seen).toHaveLength(3);
      expect(seen[2]).toMatchObject({ done: true });
      expect(await play(standIn(), 1, ['win', 'b'])).toHaveLength(2);
    });

    it('says what an environment throws, what is unknown, and how it died', async () => {
      await expect(play(standIn(), 1, ['nan'])).rejects.toThrow(/ValueError: Out of range float values/);
      await expect(play(standIn('game:None'), 1, [])).rejects.toThrow('ValueError: Environment game:None not found');
      await expect(play(standIn(), 1, ['die'])).rejects.toThrow(/it ended \(exit code 5\)/);
    });
  },
);

describe.skipIf(!hasGem)(`the bridge, with GEM${hasGem ? '' : ' (not installed; set GEM_PYTHON)'}`, () => {
  it('plays the games that are here, reward for reward', async () => {
    for (const [name, moves] of [
      ['game:GuessTheNumber-v0-easy', ['5', '3', '8', '1']],
      ['game:Mastermind-v0-easy', ['1 2', '3 4', '5 6', '1 1', '7 7']],
      ['game:Sudoku-v0-easy', ['1 1 1', '2 2 2', '1 2 3', '4 4 4']],
    ] as const) {
      const theirs = makeEnvironment(`gem:${name}`, { python, processes: 1 });
      for (const seed of [0, 1, 2]) {
        const answers = moves.map(move => `I say \\boxed{${move}}`);
        const outcome = (seen: Awaited<ReturnType<typeof play>>) =>
          seen.slice(1).map(one => [(one as { reward: number }).reward, (one as { done: boolean }).done]);
        expect(outcome(await play(theirs, seed, answers))).toEqual(
          outcome(await play(makeEnvironment(name), seed, answers)),
        );
      }
    }
  });
});
