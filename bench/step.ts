import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onnxPolicy } from '../src/engines/onnx/index.ts';
import { Model } from '../src/engines/onnx/model.ts';
import type { RewardInput } from '../src/index.ts';
import { grpo, train } from '../src/index.ts';
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
    const measured = await withConfig(shape, config => compare(shape, config));
    rows.push([name, ...measured.seconds]);
    parts.push([name, ...measured.parts]);
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

/** Share of even ids in the answer. */
function evenShare({ episode }: RewardInput): number {
  const tokens = episode.segments.flatMap(({ source, tokens }) => (source === 'policy' ? [...tokens] : []));
  return tokens.filter(token => token % 2 === 0).length / tokens.length;
}

async function compare(shape: ModelShape, config: string): Promise<{ seconds: Cell[]; parts: Cell[] }> {
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
    const steps = train({
      policy: () => onnxPolicy({ model: directory, threads: THREADS }),
      tasks: prompts.map(prompt => ({ prompt })),
      reward: evenShare,
      algorithm: grpo(),
      groupsPerStep: TASKS,
      groupSize: SAMPLES,
      limits: { maxNewTokens: NEW },
      // Exactly so many tokens, as the peer is told as well.
      sampling: { stopTokens: [] },
      optimizer: { learningRate: 1e-4 },
      steps: 1_000_000,
    });
    let metrics: Readonly<Record<string, number>> = {};
    const cases = [
      { name: 'peer', run: async () => (await peer.ask<{ readonly seconds: number }>({})).seconds },
      {
        name: 'own',
        run: async () => {
          const { value } = await steps.next();
          metrics = value!.metrics;
          return undefined;
        },
      },
    ];
    const times = await interleave(cases, { rounds: 3, seconds: 5 });
    await steps.return?.();
    await peer.close();
    const [theirs, ours] = [times.get('peer')!, times.get('own')!];
    return { seconds: [theirs, ours, theirs / ours], parts: TIMINGS.map(name => metrics[name] ?? '') };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** So many characters, none of them white space. */
const characters = (count: number) => String.fromCodePoint(...Array.from({ length: count }, (_, i) => 0x4e00 + i));
