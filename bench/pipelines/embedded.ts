import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { multiTurn } from '../../src/agents/multi-turn.ts';
import { grpo } from '../../src/algorithms/recipes.ts';
import { onnxPolicy } from '../../src/engines/onnx/index.ts';
import type { Overlap } from '../../src/rollout/async.ts';
import { train } from '../../src/train.ts';

/** What a step of the embedded engine takes, in seconds: means over the steps that count. */
export interface Step {
  readonly step: number;
  /** Sampling, as long as it takes by itself; only in sync. */
  readonly generate: number;
  readonly learn: number;
  readonly generatorIdle: number;
  readonly trainerIdle: number;
  readonly staleness: number;
}

const model = fileURLToPath(new URL('../../examples/calculator-agent/model', import.meta.url));

/** 16 groups of 8 episodes of three answers of 12 tokens each; each tool call takes `tool` milliseconds. */
export async function embedded(
  overlap: Overlap | undefined,
  { tool, threads, steps = 12, warmup = 4 }: { tool: number; threads: number; steps?: number; warmup?: number },
): Promise<Step> {
  const agent = multiTurn(() => ({
    reset: ({ prompt }) => ({ observation: prompt }),
    step: async ({ turn, actionText }) => {
      // Some take three times as long as others.
      if (tool > 0) await wait(tool * (0.5 + (actionText.length % 3) / 2));
      return { reward: actionText.length % 2, done: turn === 2, feedback: '?' };
    },
  }));
  const policy = await onnxPolicy({ model, threads, ...(overlap && { separate: {} }) });
  try {
    const run = train({
      policy,
      agent,
      tasks: Array.from({ length: 400 }, (_, i) => ({ prompt: `${i % 89}*${i % 7}+${i}` })),
      algorithm: grpo(),
      groupSize: 8,
      groupsPerStep: 16,
      steps: steps + warmup,
      optimizer: { learningRate: 1e-5 },
      sampling: { stopTokens: [] },
      limits: { maxNewTokens: 12 },
      pipeline: { overlap },
      log: () => undefined,
    });
    const totals: Record<string, number> = {};
    for await (const { index, metrics } of run) {
      if (index <= warmup) continue;
      for (const [name, value] of Object.entries(metrics)) totals[name] = (totals[name] ?? 0) + value / steps;
    }
    const of = (name: string) => totals[name] ?? 0;
    const learn = of('timing/make_experience') + of('timing/ppo_train') + of('timing/broadcast');
    const [step, generate] = [of('timing/step_total'), of('timing/generation')];
    return {
      step,
      generate,
      learn,
      generatorIdle: overlap ? of('timing/generator_idle') : learn / step,
      trainerIdle: overlap ? of('timing/trainer_idle') : generate / step,
      staleness: of('rollout/staleness_mean'),
    };
  } finally {
    await policy.close();
  }
}
