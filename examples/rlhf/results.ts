import { readFileSync } from 'node:fs';
import { loadRenderer } from '../../src/text/chat-renderer.ts';
import { chartSvg, type Point } from '../../tools/plot/chart.ts';
import { likingOf } from './true-preference.js';

/** How much readers like the answers of a model to held-out prompts, and what it scores against the warm start's. */
export interface Judged {
  /** Mean of `likingOf`. */
  readonly liking: number;
  /** Share of answers with the right digits in ascending order, the best there are. */
  readonly sorted: number;
  /** Share of answers that are liked more than the warm start's to the same prompt; one that is liked as much is half. */
  readonly winRate: number;
}

/** What one chain came to. */
export interface SeedResult {
  readonly seed: number;
  /** Share of held-out pairs of which the chosen answer scores higher; one label in ten is wrong. */
  readonly accuracy: { readonly rm: number; readonly dpo: number };
  readonly sft: Judged;
  readonly ppo: Judged;
  readonly dpo: Judged;
  /** From the warm start to the last step of PPO, on held-out prompts. */
  readonly curve: readonly Measured[];
}

export interface Measured {
  readonly step: number;
  readonly liking: number;
  /** Normalised score of the reward model, which is what PPO sees. */
  readonly score: number;
  /** Estimate (k1) of the step's mean KL from the warm start, nats a token; missing at step 0. */
  readonly kl?: number;
}

type Line = {
  readonly step: number;
  readonly phase: string;
  readonly task: { readonly id: string; readonly metadata: { readonly digits: string } };
  readonly segments: readonly { readonly tokens: readonly number[] }[];
  readonly score: number;
};

function linesOf<T>(path: string): T[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.map(line => JSON.parse(line) as T);
}

export const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The last value of a metric of a run. */
export function lastOf(directory: string, metric: string): number {
  const found = linesOf<Record<string, number>>(`${directory}/metrics.jsonl`).findLast(record => metric in record);
  if (found === undefined) throw new Error(`${directory}/metrics.jsonl has no ${metric}`);
  return found[metric]!;
}

/** The true preference of the held-out answers that `directory`, a run of `tokenloop eval`, stored. */
export function judged(directory: string, start: string): Judged {
  const [likings, before] = [directory, start].map(path =>
    linesOf<Line>(`${path}/episodes.jsonl`).map(({ score }) => score),
  );
  if (likings!.length !== before!.length) throw new Error(`${directory} and ${start} have not the same answers`);
  return {
    liking: mean(likings!),
    sorted: mean(likings!.map(liking => Number(liking === 1))),
    winRate: mean(likings!.map((liking, i) => (1 + Math.sign(liking - before![i]!)) / 2)),
  };
}

/** The same of the evaluations during a run that the reward model scored, and how far the policy was from its start. */
export async function curveOf(directory: string): Promise<Measured[]> {
  const renderer = await loadRenderer(`${directory}/model`);
  const episodes = linesOf<Line>(`${directory}/episodes.jsonl`).filter(({ phase }) => phase === 'eval');
  const metrics = linesOf<Record<string, number>>(`${directory}/metrics.jsonl`);
  const steps = [...new Set(episodes.map(({ step }) => step))];
  return steps.map(step => {
    const group = episodes.filter(episode => episode.step === step);
    const kl = metrics.find(record => record.step === step)?.['train/kl'];
    return {
      step,
      liking: mean(
        group.map(({ segments, task }) => likingOf(renderer.decode(segments.at(-1)!.tokens), task.metadata.digits)),
      ),
      score: mean(group.map(({ score }) => score)),
      ...(kl !== undefined && { kl }),
    };
  });
}

/** The chart beside the README. */
export function chart(results: readonly SeedResult[]): string {
  const average = (stage: 'sft' | 'dpo') => mean(results.map(result => result[stage].liking));
  const points = (curve: readonly Measured[]): Point[] => curve.map(({ step, liking }) => ({ x: step, y: liking }));
  return chartSvg({
    title: `True preference under PPO against a reward model: ${results.length} seeds and their mean`,
    xLabel: 'steps of PPO',
    yLabel: 'liking of held-out answers',
    runs: results.map(({ curve }) => points(curve)),
    references: [
      { label: `DPO on the same pairs ${average('dpo').toFixed(2)}`, y: average('dpo') },
      { label: `warm start ${average('sft').toFixed(2)}`, y: average('sft') },
    ],
  });
}
