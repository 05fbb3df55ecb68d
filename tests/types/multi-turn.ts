import { onnxPolicy } from '../../src/engines/onnx/index.ts';
import type { Action, Environment, EnvironmentContext, StepResult } from '../../src/index.ts';
import { multiTurn, rloo, train } from '../../src/index.ts';

/** An environment of one's own as a class. Compiled by `npm run types`, never run. */

declare function show(...values: unknown[]): void;

class GuessNumber implements Environment {
  #target = 0;

  reset(_task: unknown, { seed }: EnvironmentContext) {
    this.#target = 1 + (seed % 100);
    return { observation: [{ role: 'user', content: 'Guess my number, 1 to 100.' }] };
  }

  step({ actionText }: Action): StepResult {
    const guess = Number(/\d+/.exec(actionText)?.[0] ?? Number.NaN);
    if (guess === this.#target) return { reward: 1, done: true };
    const content = guess < this.#target ? 'higher' : 'lower';
    return { reward: 0, done: false, feedback: [{ role: 'user', content }] };
  }
}

export async function guessing(): Promise<void> {
  const agent = multiTurn(() => new GuessNumber(), { maxTurns: 7, maxNewTokens: 32 });
  const policy = await onnxPolicy({ model: './models/tiny' });
  const tasks = Array.from({ length: 1000 }, (_, game) => ({ prompt: `game ${game}` }));
  for await (const step of train({ policy, agent, tasks, algorithm: rloo(), steps: 100, seed: 1 })) {
    show(step.metrics);
    if (step.evaluation !== undefined) break;
  }
}

/** An object does as well as a class; what it is given is inferred. */
export const echo = multiTurn(() => ({
  reset: task => ({ observation: task.prompt }),
  step: async ({ actionText, label, turn }) => ({
    reward: actionText === label ? 1 : 0,
    done: turn === 2,
    feedback: actionText.toUpperCase(),
  }),
}));

/** An environment may be made anew for every episode, which may take time. */
export const remote = multiTurn(async () => new GuessNumber());

export function refused() {
  // @ts-expect-error an environment, not a function that makes one
  multiTurn(new GuessNumber());
  // @ts-expect-error a step without a reward
  multiTurn(() => ({ reset: () => ({ observation: '' }), step: () => ({ done: true }) }));
  // @ts-expect-error an observation that is neither text nor messages
  multiTurn(() => ({ reset: () => ({ observation: 5 }), step: () => ({ reward: 0, done: true }) }));
  // @ts-expect-error no step
  multiTurn(() => ({ reset: () => ({ observation: '' }) }));
}
