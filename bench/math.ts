import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RewardInput } from '../src/rewards/contracts.ts';
import { mathReward } from '../src/rewards/math/reward.ts';
import { verifyMath } from '../src/rewards/math/verify.ts';
import { type Cell, interleave, Report } from './harness.ts';
import { Peer } from './peer.ts';

type Pair = readonly [text: string, label: string];

/**
 * Verdicts a second on one core: the verifier alone and as the reward that jobs use, in its thread, beside math-verify
 * with PEERS_PYTHON. Two workloads: the pairs that the tests compare, and solutions of the length that models write with
 * the labels of GSM8K.
 */
export async function run(): Promise<void> {
  const report = new Report('math');
  for (const [title, pairs] of [
    ['the pairs of tests/goldens/math', goldenPairs()],
    ['solutions of 600 characters with the labels of GSM8K', solutions()],
  ] as const) {
    const rows = await compare(pairs);
    report.add({
      title: `${pairs.length} ${title}`,
      columns: ['verifier', 'verdicts/s', 'times math-verify', 'correct'],
      rows,
    });
  }
  report.save();
}

async function compare(pairs: readonly Pair[]): Promise<Cell[][]> {
  const directory = mkdtempSync(join(tmpdir(), 'tokenloop-math-'));
  writeFileSync(join(directory, 'pairs.json'), JSON.stringify(pairs));
  const peer = process.env.PEERS_PYTHON ? new Peer('math_verify_peer.py', [join(directory, 'pairs.json')]) : undefined;
  const reward = mathReward();
  const batch = pairs.map(([text, label]) => input(text, label));
  const correct = new Map<string, number>();
  try {
    const times = await interleave([
      {
        name: 'verifyMath',
        run() {
          correct.set('verifyMath', pairs.filter(([text, label]) => verifyMath(text, label).correct).length);
          return undefined;
        },
      },
      {
        name: 'mathReward, 1 worker',
        async run() {
          const scores = await reward(batch);
          const right = scores.filter(score => (typeof score === 'number' ? score : score.reward) === 1);
          correct.set('mathReward, 1 worker', right.length);
          return undefined;
        },
      },
      ...(peer === undefined
        ? []
        : [
            {
              name: 'math-verify',
              async run() {
                const answer = await peer.ask<{ seconds: number; correct: number }>({});
                correct.set('math-verify', answer.correct);
                return answer.seconds;
              },
            },
          ]),
    ]);
    const rate = (name: string) => pairs.length / times.get(name)!;
    const other = peer === undefined ? undefined : rate('math-verify');
    return [...times.keys()].map(name => {
      const ratio = other === undefined ? 'not measured' : rate(name) / other;
      return [name, rate(name), ratio, correct.get(name)!];
    });
  } finally {
    await reward.close();
    await peer?.close();
    rmSync(directory, { recursive: true });
  }
}

const read = (path: string) =>
  readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');

function goldenPairs(): Pair[] {
  const rows = read('tests/goldens/math/pairs.txt').map(line => line.split(' ~~ '));
  return rows.flatMap(([gold, answer]): Pair[] => {
    if (gold === undefined || answer === undefined) return [];
    if (gold.startsWith('text:')) return [[answer.replaceAll('\\n', '\n'), gold.slice(5).trim()]];
    return [[`\\boxed{${answer}}`, gold]];
  });
}

/** Every second one ends with another number. */
function solutions(): Pair[] {
  const sentence = 'Each of the 12 boxes holds 3 rows of 4 pens, so that is 12 * 3 * 4 = 144 pens in all. ';
  const labels = read('examples/gsm8k/test.jsonl')
    .slice(0, 400)
    .map(row => (JSON.parse(row) as { label: string }).label);
  return labels.map((label, i) => [
    `${sentence.repeat(7)}\nThe answer is \\boxed{${i % 2 ? label : `${label}1`}}.`,
    label,
  ]);
}

const input = (text: string, label: string): RewardInput => ({
  task: { id: '', prompt: '', label, metadata: {} },
  prompt: '',
  text,
  query: text,
  label,
  episode: { id: '', group: '', sample: 0, segments: [], steps: [] },
  signal: new AbortController().signal,
});
