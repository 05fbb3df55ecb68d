import { fileURLToPath } from 'node:url';
import type { Generation } from '../src/engines/contracts.ts';
import { onnxPolicy } from '../src/engines/onnx/index.ts';
import { OnnxLearnerCore } from '../src/engines/onnx/learner.ts';
import { Model } from '../src/engines/onnx/model.ts';
import { OnnxSamplerCore } from '../src/engines/onnx/sampler.ts';
import { makeEnvironment } from '../src/envs/index.ts';
import { grpo, multiTurn, readJsonl, type TaskInput, train } from '../src/index.ts';
import { FROZEN_DTYPES, type FrozenDType } from '../src/nn/frozen.ts';
import { mean } from '../src/rollout/metrics.ts';
import { type Cell, Report, type Table, THREADS } from './harness.ts';
import { measured } from './memory.ts';
import { MODELS, withConfig } from './models.ts';
import { requests } from './workload.ts';

/** LoRA on a base in 8 and 4 bits beside float32: what the bits change, learning, memory and time. */

const SECTIONS: Readonly<Record<string, () => Promise<Table>>> = { accuracy, learning, memory };

export async function run(names: string[]): Promise<void> {
  const report = new Report('frozen');
  for (const name of names.length > 0 ? names : Object.keys(SECTIONS)) {
    const section = SECTIONS[name];
    if (section === undefined) throw new Error(`no part '${name}'; there are ${Object.keys(SECTIONS).join(', ')}`);
    report.add(await section());
  }
  if (names.length === 0) report.save();
}

const BASES = [undefined, ...FROZEN_DTYPES] as const;
const called = (frozen: FrozenDType | undefined) => frozen ?? 'float32';
const CALCULATOR = fileURLToPath(new URL('../examples/calculator-agent/', import.meta.url));
const LORA = { rank: 16, alpha: 32, targetModules: 'all-linear', seed: 0 } as const;

/** Of tokens that the float32 model draws: their perplexity under each base, and the divergence from float32. */
async function accuracy(): Promise<Table> {
  const rows: Cell[][] = [];
  const add = async (name: string, directory: string, initSeed: number | undefined, length: number) => {
    const open = (frozen?: FrozenDType) => new Model(directory, initSeed, undefined, { ...LORA, frozen });
    const sequences = await drawn(open(), 64, length);
    let exact: number[] | undefined;
    for (const frozen of BASES) {
      const learner = learnerOf(open(frozen));
      const { logprobs } = await learner.forward({ temperature: 1, sequences });
      await learner.close();
      const found = logprobs.flatMap(row => [...row]);
      exact ??= found;
      const ratios = found.map((value, i) => value - exact![i]!);
      const divergence = mean(ratios.map(each => Math.exp(each) - 1 - each));
      const largest = Math.max(...ratios.map(Math.abs));
      rows.push([name, called(frozen), found.length, Math.exp(-mean(found)), divergence, largest]);
    }
  };
  await add('0.4M, trained (calculator)', `${CALCULATOR}model`, undefined, 12);
  for (const name of ['25M', '135M']) {
    await withConfig(MODELS[name]!, directory => add(`${name}, random weights`, directory, 1, 16));
  }
  return {
    title: 'What the bits of the base change: tokens drawn from float32',
    columns: ['model', 'base', 'tokens', 'perplexity', 'KL, nats', 'largest |δ|'],
    rows,
  };
}

function learnerOf(model: Model): OnnxLearnerCore {
  return new OnnxLearnerCore(model, {
    threads: THREADS,
    maxTokens: 1024,
    betas: [0.9, 0.95],
    eps: 1e-8,
    weightDecay: 0,
    maxNorm: 1,
  });
}

/** `count` sequences of up to `length` tokens after one random token, of which the drawn ones are predicted. */
async function drawn(model: Model, count: number, length: number) {
  const finished = new Map<number, Generation>();
  const sampler = new OnnxSamplerCore(
    model,
    { threads: THREADS, maxRows: count, prefillTokens: 1024, prefixCacheBytes: 0 },
    { token: () => undefined, finished: (id, generation) => void finished.set(id, generation) },
  );
  const asked = requests(count, 2, length, model.config.vocabSize);
  sampler.submit(asked);
  while (sampler.busy) await sampler.step();
  await sampler.close();
  return asked.map(({ id, tokens }) => {
    const sampled = finished.get(id)!.tokens;
    return {
      tokens: Int32Array.from([...tokens, ...sampled]),
      predict: Uint8Array.from([...tokens.map(() => 0), ...sampled.map(() => 1)]),
    };
  });
}

const SEEDS = [1];
const STEPS = 30;

/** The recipe of examples/calculator-agent with LoRA, on each base. */
async function learning(): Promise<Table> {
  const rows: Cell[][] = [];
  for (const seed of SEEDS) {
    for (const frozen of BASES) {
      const steps = train({
        tasks: readJsonl<TaskInput>(`${CALCULATOR}train.jsonl`, row => row as never),
        agent: multiTurn(makeEnvironment('calculator'), { maxTurns: 3, maxNewTokens: 16 }),
        groupsPerStep: 32,
        groupSize: 8,
        optimizer: { learningRate: 4e-3, schedule: 'cosine_with_min_lr' },
        policy: () =>
          onnxPolicy({
            model: `${CALCULATOR}model`,
            threads: THREADS,
            lora: { rank: 16, alpha: 32, seed, frozen },
            adam: { betas: [0.9, 0.99] },
          }),
        algorithm: grpo(),
        seed,
        steps: STEPS,
      });
      const rewards: number[] = [];
      let mismatch = 0;
      for await (const { metrics } of steps) {
        rewards.push(metrics['rollout/reward_mean']!);
        mismatch = Math.max(mismatch, metrics['train/mismatch_max']!);
      }
      const around = (start: number) => mean(rewards.slice(start, start + 4));
      rows.push([called(frozen), seed, rewards[0]!, around(STEPS / 2), around(STEPS - 4), mismatch]);
    }
  }
  return {
    title: `calculator agent, 0.4M, LoRA of rank 16: reward over ${STEPS} steps`,
    columns: ['base', 'seed', 'first step', 'half way', 'last', 'largest |δ|'],
    rows,
  };
}

/** Of the learner alone, each case in a process of its own. */
async function memory(): Promise<Table> {
  const rows: Cell[][] = [];
  for (const recompute of [false, true]) {
    for (const frozen of BASES) {
      const { peak, ms } = measured(MODELS['135M']!, 4, 256, {
        rank: 16,
        ...(frozen && { frozen }),
        learner: { recompute },
      });
      rows.push([called(frozen), recompute ? 'anew' : 'kept', peak, ms]);
    }
  }
  return {
    title: 'SmolLM2-135M, LoRA of rank 16, 4 × 256 tokens: peak of a process, and forward and backward',
    columns: ['base', 'activations', 'peak, MB', 'ms'],
    rows,
  };
}
