import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { root, startNode } from '../support/process.ts';
import { workplace, writeTinyModel } from '../support/workplace.ts';

/** Programs that leave `train()` on the real engine early: they end by themselves, so nothing was left open. */

const cwd = workplace();
beforeAll(() => writeTinyModel(join(cwd, 'model')));

const PROGRAM = `
  import { grpo, multiTurn, train } from ${JSON.stringify(join(root, 'src/index.ts'))};
  import { onnxPolicy } from ${JSON.stringify(join(root, 'src/engines/onnx/index.ts'))};

  const abort = new AbortController();
  const closed = { environments: 0, made: 0 };
  const agent = multiTurn(() => ({
    reset: ({ prompt }) => {
      closed.made += 1;
      return { observation: prompt };
    },
    step: async ({ turn }) => {
      if (closed.made > 16) return inThirdStep();
      return { reward: Math.random(), done: turn === 1, feedback: '?' };
    },
    close: () => {
      closed.environments += 1;
    },
  }));
  const inThirdStep = () => {
    abort.abort(new Error('enough'));
    return new Promise(() => undefined);
  };
  const options = {
    policy: () => onnxPolicy({ model: 'model', threads: 1 }),
    agent,
    tasks: [{ prompt: '1+2' }, { prompt: '34' }],
    algorithm: grpo(),
    groupSize: 4,
    groupsPerStep: 2,
    steps: 100,
    limits: { maxNewTokens: 4 },
  };
  const report = text => console.log(text + ', ' + closed.environments + ' of ' + closed.made + ' environments closed');
`;

const endings = {
  break: `
    for await (const step of train(options)) if (step.index === 2) break;
    report('left');`,
  'an exception': `
    try {
      for await (const step of train(options)) if (step.index === 2) throw new Error('my own');
    } catch (error) {
      report(error.message);
    }`,
  'an abort in the middle of a step': `
    try {
      for await (const step of train({ ...options, signal: abort.signal }));
    } catch (error) {
      report(error.message);
    }`,
  'an abort before the first step': `
    try {
      for await (const step of train({ ...options, signal: AbortSignal.abort(new Error('never mind')) }));
    } catch (error) {
      report(error.message);
    }`,
};

it.concurrent.each([
  ['break', 'left, 16 of 16'],
  ['an exception', 'my own, 16 of 16'],
  ['an abort in the middle of a step', 'enough, 24 of 24'],
  ['an abort before the first step', 'never mind, 0 of 0'],
] as const)('%s', async (ending, expected) => {
  const program = join(cwd, `${ending}.mjs`);
  writeFileSync(program, PROGRAM + endings[ending]);
  const { code, out, err } = await startNode([program], { cwd }).ended;
  expect({ code, out, err }).toEqual({ code: 0, out: `${expected} environments closed\n`, err: '' });
});
