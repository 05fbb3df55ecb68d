import { type EnvironmentService, type QueueAgent, registerAgent, registerEnvironmentService } from 'tokenloop';

/**
 * An agent with queues: mental arithmetic, tried again with feedback until it is right.
 *
 *   user       12+7
 *   assistant  a18         a wrong answer
 *   user       e           so it may try again
 *   assistant  a19         right: my_param, times turn_discount for the turn that it came late
 */
class RetryUntilRight implements QueueAgent<MathSingleStep> {
  static readonly args = { num_turns: 3, turn_discount: 0.5, my_param: 1 };
  readonly #args: typeof RetryUntilRight.args;

  constructor(args: typeof RetryUntilRight.args) {
    this.#args = args;
  }

  collectTrajectory: QueueAgent<MathSingleStep>['collectTrajectory'] = async (prompt, env, obsQueue, actQueue, run) => {
    const { num_turns, turn_discount, my_param } = this.#args;
    const { renderer, seed } = run;
    await env.reset({ seed, options: { label: prompt.task.label } });
    let messages = prompt.task.prompt as { role: string; content: string }[];
    let tokens: ArrayLike<number> = prompt.promptIds;
    for (let turn = 0; ; turn++) {
      await obsQueue.put([prompt.qid, tokens, { n: 1 }]);
      const { seqs, outputIds } = await actQueue.get();
      const text = renderer.decode(outputIds[0]!);
      const [, right] = await env.step(text);
      if (right || turn + 1 === num_turns) {
        const reward = right ? my_param * turn_discount ** turn : 0;
        return [{ sequence: seqs[0]!, reward, metrics: { right, attempts: turn + 1 } }];
      }
      // What the policy sampled stays as it is; only the feedback is tokenised.
      const context = Int32Array.from(seqs[0]!);
      const answer = { role: 'assistant', content: text };
      const added = [{ role: 'user', content: 'e' }];
      const delta = await renderer.extend({ context, earlier: messages, answer, added });
      tokens = delta.kind === 'append' ? [...context, ...delta.tokens] : delta.tokens;
      messages = [...messages, answer, ...added];
    }
  };
}

/** One step: whether an answer (`a` and a number) is the label. */
class MathSingleStep implements EnvironmentService<string> {
  #label = '';

  reset: EnvironmentService['reset'] = ({ options } = {}) => {
    this.#label = String(options?.label);
    return [null, {}];
  };

  step(answer: string): [null, number, boolean, boolean, Record<string, unknown>] {
    return [null, Number(answer === `a${this.#label}`), true, false, {}];
  }
}

registerAgent('retry-until-right', RetryUntilRight);
registerEnvironmentService('math-single-step', MathSingleStep);
