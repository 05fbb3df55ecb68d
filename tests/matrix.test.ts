import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EXECUTION_MODES } from '../src/agents/modes.ts';
import { ESTIMATOR_NAMES, estimator } from '../src/algorithms/advantages/index.ts';
import { createAlgorithm } from '../src/algorithms/algorithm.ts';
import { ppoObjective } from '../src/algorithms/losses/ppo.ts';
import { toTrajectories } from '../src/episode/trajectory.ts';
import { validateEpisode, validateTrajectory } from '../src/episode/validate.ts';
import { PARTIAL_CACHES } from '../src/rollout/async.ts';
import type { PipelineChoice } from '../src/rollout/choose.ts';
import { tableCritic } from '../src/testing/table-critic.ts';
import { train } from '../src/train.ts';
import { toSequence } from '../src/training/experience.ts';
import { abcPolicy } from './support/abc-policy.ts';
import { MODE_CASES, MODES } from './support/modes.ts';

/** Every estimator with every execution mode and every pipeline: two steps, and the invariants on every episode. */

const PIPELINES: Readonly<Record<string, PipelineChoice>> = {
  sync: {},
  async: { overlap: { maxStaleness: 1 } },
  ...Object.fromEntries(
    PARTIAL_CACHES.map(partial => [`partial, ${partial}`, { overlap: { maxStaleness: 1, partial } }]),
  ),
};
/** The first weights, which nobody trains. */
const fresh = abcPolicy().bigram.learner;
const tasks = Array.from({ length: 4 }, (_, i) => ({ prompt: `say ${i}:`, label: 'a' }));

const cases = Object.keys(PIPELINES).flatMap(pipeline => Object.keys(MODES).map(mode => [pipeline, mode] as const));

it.each(cases)('%s: every estimator in the mode %s', async (pipeline, mode) => {
  const make = MODES[mode]!;
  for (const name of ESTIMATOR_NAMES) {
    const { engine, bigram } = abcPolicy();
    const made = estimator(name);
    const algorithm = createAlgorithm({ name, estimator: made, objective: ppoObjective({ clip: [0.2, 0.2] }) });
    const critic = made.needsCritic ? { critic: { model: tableCritic(260), learningRate: 0.1 } } : {};
    const run = train({
      policy: engine,
      agent: make(),
      tasks,
      algorithm,
      pipeline: PIPELINES[pipeline]!,
      groupSize: 2,
      groupsPerStep: 2,
      steps: 2,
      limits: { maxNewTokens: 2, maxTurns: 3 },
      ...critic,
    });
    const where = `${mode} × ${name} × ${pipeline}`;
    let steps = 0;
    for await (const { episodes, metrics } of run) {
      steps += 1;
      expect(episodes.length, where).toBeGreaterThan(0);
      for (const episode of episodes) {
        expect(episode.outcome.kind, `${where}: ${JSON.stringify(episode.outcome)}`).not.toBe('failed');
        validateEpisode(episode, { vocabularySize: 260 });
        const rows = toTrajectories(episode);
        for (const row of rows) validateTrajectory(row);
        // What the first weights sampled they give the same log-probs, to the rounding of float32.
        // A greedy attempt is certain of its tokens, and not trained on.
        if (episode.id.endsWith('/greedy')) continue;
        if (rows.some(({ versions }) => versions.some(version => version > 0))) continue;
        const sequences = rows.map(toSequence);
        const { logprobs } = await fresh.forward({ sequences, temperature: 1 });
        for (const [i, row] of rows.entries()) {
          const recorded = row.logprobs.filter(value => !Number.isNaN(value));
          for (const [t, value] of recorded.entries()) expect(logprobs[i]![t]).toBeCloseTo(value, 5);
        }
      }
      const wrong = Object.entries(metrics).filter(([, value]) => !Number.isFinite(value));
      expect(wrong, where).toEqual([]);
    }
    expect(steps, where).toBe(2);
    expect(bigram.learner.version, where).toBeGreaterThanOrEqual(0);
  }
});

describe('the modes', () => {
  it('are all played, and each form is of its mode', () => {
    expect(Object.keys(MODE_CASES).sort()).toEqual(Object.keys(EXECUTION_MODES).sort());
    for (const [mode, forms] of Object.entries(MODE_CASES)) {
      const names = Object.values(forms).map(make => make().name);
      expect(names.length, mode).toBeGreaterThan(0);
      expect(new Set(names), mode).toEqual(new Set([mode]));
    }
  });

  it('are all that there are: whoever records an episode is one', () => {
    const root = new URL('../src/agents/', import.meta.url);
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      file => file.endsWith('.ts') && !file.endsWith('.test.ts') && file !== 'session.ts',
    );
    const makers = files.flatMap(file => {
      const source = readFileSync(new URL(file, root), 'utf8');
      if (!source.includes('recordEpisode(')) return [];
      return [...source.matchAll(/^export function (\w+)\([^)]*\): Executor\b/gm)].map(([, name]) => name!);
    });
    const known = Object.values(EXECUTION_MODES).map(({ name }) => name);
    expect(makers.sort()).toEqual(known.sort());
  });
});
