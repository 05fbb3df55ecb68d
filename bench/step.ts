import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onnxPolicy } from '../src/engines/onnx/index.ts';
import { Model } from '../src/engines/onnx/model.ts';
import type { RewardInput } from '../src/index.ts';
import { type Algorithm, grpo, train } from '../src/index.ts';
import { writeCheckpoint } from '../src/nn/checkpoint/directory.ts';
import { writeCharTokenizer } from '../src/text/char-tokenizer.ts';
import { type Cell, interleave, Report, type Table, THREADS } from './harness.ts';
import { MODELS, type ModelShape, withConfig } from './models.ts';
import { Peer } from './peer.ts';
import { randomIds } from './workload.ts';

const TASKS = 32;
const SAMPLES = 8;
const PROMPT = 16;
const NEW = 16;
const NAMES = ['0.75M', '25M'];
const SPECIAL = ['<|pad|>', '<|end|>'] as const;

/**
 * One step of GRPO from end to end (sampling, reward, advantages, update, publishing) beside TRL's trainer: the same
 * weights, prompts, reward, number of sampled tokens and threads, in turns.
 */
export async function run(names: string[]): Promise<void> {
  const report = new Report('step');
  const rows: Cell[][] = [];
  const parts: Cell[][] = [];
  for (const name of names.length > 0 ? names : NAMES) {
    const shape = MODELS[name];
    if (shape === undefined) throw new Error(`no model '${name}'; there are ${Object.keys(MODELS).join(', ')}`);
    for (const measured of await withConfig(shape, config => compare(shape, config))) {
      rows.push([`${name}, ${measured.setting}`, ...measured.seconds]);
      parts.push([`${name}, ${measured.setting}`, ...measured.parts]);
    }
  }
  const what = `${TASKS} prompts of ${PROMPT} tokens × ${SAMPLES} samples × ${NEW} tokens, ${THREADS} threads`;
  const beside: Table = { title: `A GRPO step: ${what}`, columns: ['model', 'TRL, s', 'tokenloop, s', '×'], rows };
  report.add(beside);
  report.add({ title: 'Where our step goes, s (of the last step)', columns: ['model', ...TIMINGS], rows: parts });
  if (names.length === 0) report.save();
}

const TIMINGS = [
  'timing/generation',
  'timing/make_experience',
  'timing/ppo_train',
  'timing/broadcast',
  'timing/step_total',
] as const;

/**
 * With one update a step the ratio is 1 whichever log-probs it is taken against; the peer takes those of the training
 * pass itself. Ours computes them beforehand, unless it takes the sampler's.
 */
const SETTINGS: Readonly<Record<string, Algorithm>> = {
  'ratio to the sampler': grpo({ ratioAgainst: 'behaviour' }),
  'as it comes': grpo(),
};

interface Measured {
  readonly setting: string;
  readonly seconds: readonly Cell[];
  readonly parts: readonly Cell[];
}

/** Share of even ids in the answer. */
function evenShare({ episode }: RewardInput): number {
  const tokens = episode.segments.flatMap(({ source, tokens }) => (source === 'policy' ? [...tokens] : []));
  return tokens.filter(token => token % 2 === 0).length / tokens.length;
}

async function compare(shape: ModelShape, config: string): Promise<Measured[]> {
  const root = mkdtempSync(join(tmpdir(), 'tokenloop-step-'));
  const directory = join(root, 'model');
  try {
    const { rawConfig, layout, weights } = new Model(config, 1);
    await writeCheckpoint(directory, { rawConfig, layout, weights, carry: config });
    const alphabet = characters(shape.vocabulary - SPECIAL.length);
    await writeCharTokenizer(directory, { special: SPECIAL, alphabet, pad: SPECIAL[0], eos: SPECIAL[1] });
    const letters = [...alphabet];
    const prompts = Array.from({ length: TASKS }, (_, task) =>
      Array.from(randomIds(PROMPT, letters.length, task), id => letters[id]).join(''),
    );
    const tasks = join(root, 'tasks.json');
    writeFileSync(tasks, JSON.stringify({ prompts, samples: SAMPLES, new: NEW }));
    const peer = new Peer('trl_peer.py', [directory, tasks, THREADS]);
    const runs = Object.entries(SETTINGS).map(([setting, algorithm]) => ownRun(setting, algorithm, directory, prompts));
    const theirs = { name: 'peer', run: async () => (await peer.ask<{ readonly seconds: number }>({})).seconds };
    const times = await interleave([theirs, ...runs], { rounds: 3, seconds: 25 });
    for (const { close } of runs) await close();
    await peer.close();
    const peerSeconds = times.get('peer')!;
    return runs.map(({ name, parts }) => {
      const seconds = times.get(name)!;
      return { setting: name, seconds: [peerSeconds, seconds, peerSeconds / seconds], parts: parts() };
    });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Each repetition is the next step of one run. */
function ownRun(setting: string, algorithm: Algorithm, directory: string, prompts: readonly string[]) {
  const steps = train({
    policy: () => onnxPolicy({ model: directory, threads: THREADS }),
    tasks: prompts.map(prompt => ({ prompt })),
    reward: evenShare,
    algorithm,
    groupsPerStep: TASKS,
    groupSize: SAMPLES,
    limits: { maxNewTokens: NEW },
    // Exactly so many tokens, as the peer is told as well.
    sampling: { stopTokens: [] },
    optimizer: { learningRate: 1e-4 },
    steps: 1_000_000,
  });
  let metrics: Readonly<Record<string, number>> = {};
  return {
    name: setting,
    run: async () => {
      metrics = (await steps.next()).value!.metrics;
      return metrics['timing/step_total'];
    },
    parts: () => TIMINGS.map(name => metrics[name] ?? ''),
    close: async () => {
      await steps.return?.();
    },
  };
}

/** So many characters, none of them white space. */
const characters = (count: number) => String.fromCodePoint(...Array.from({ length: count }, (_, i) => 0x4e00 + i));
