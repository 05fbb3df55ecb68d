/**
 * An agent with queues: mental arithmetic, tried again with feedback until it is right.
 *
 *   user       12+7
 *   assistant  a18         a wrong answer
 *   user       no          so it may try again
 *   assistant  a19         right: my_param, halved by turn_discount for the turn that it came late
 */
class RetryUntilRight {
  static args = { num_turns: 3, turn_discount: 0.5, my_param: 1 };

  constructor(args) {
    this.args = args;
  }

  /** @type {import('tokenloop').QueueAgent['collectTrajectory']} */
  async collectTrajectory(prompt, env, obsQueue, actQueue, { renderer, seed }) {
    const { num_turns, turn_discount, my_param } = this.args;
    await env.reset({ seed, options: { label: prompt.task.label } });
    let messages = prompt.task.prompt;
    let tokens = prompt.promptIds;
    for (let turn = 0; ; turn++) {
      await obsQueue.put([prompt.qid, tokens, { n: 1 }]);
      const { seqs, outputIds } = await actQueue.get();
      const text = renderer.decode(outputIds[0]);
      const [, right] = await env.step(text);
      if (right || turn + 1 === num_turns) {
        return [{ sequence: seqs[0], reward: right ? my_param * turn_discount ** turn : 0, metrics: { right: Number(right) } }];
      }
      // What the policy sampled stays as it is; only the feedback is tokenised.
      const context = Int32Array.from(seqs[0]);
      const answer = { role: 'assistant', content: text };
      const added = [{ role: 'user', content: 'no' }];
      const delta = renderer.extend({ context, earlier: messages, answer, added });
      tokens = delta.kind === 'append' ? [...seqs[0], ...delta.tokens] : delta.tokens;
      messages = [...messages, answer, ...added];
    }
  }
}

/** One step: whether an answer (`a` and a number) is the label. */
class MathSingleStep {
  reset({ options }) {
    this.label = options.label;
    return [null, {}];
  }

  step(answer) {
    return [null, answer === `a${this.label}`, true, false, {}];
  }
}

export const agents = { 'retry-until-right': RetryUntilRight };
export const environments = { 'math-single-step': MathSingleStep };
