import { expect, it } from 'vitest';
import { queueAgent } from '../src/agents/queue/queue-agent.ts';
import { grpo } from '../src/algorithms/recipes.ts';
import type { LearnerSequence } from '../src/engines/contracts.ts';
import { toTrajectories } from '../src/episode/trajectory.ts';
import { train } from '../src/train.ts';
import { abcPolicy } from './support/abc-policy.ts';

/** An episode that its agent rejects is kept and counted, and no token of it reaches the learner. */

const tasks = Array.from({ length: 4 }, (_, i) => ({ prompt: `say ${i}:`, label: 'a' }));
const key = (tokens: Int32Array) => [...tokens].join(' ');

/** Keeps nothing that begins with c. */
const choosy = queueAgent({
  environment: () => ({ reset: () => [null, {}], step: () => [null, 0, true, false, {}] }),
  agent: () => ({
    async collectTrajectory({ qid, promptIds }, _, obs, act, { renderer }) {
      await obs.put([qid, promptIds]);
      const { seqs, outputIds } = await act.get();
      const said = renderer.decode(outputIds[0]!);
      return said.startsWith('c') ? [] : [{ sequence: seqs[0]!, reward: said.startsWith('a') ? 1 : 0 }];
    },
  }),
});

it.each([
  ['sync', {}],
  ['async', { overlap: { maxStaleness: 1 } }],
] as const)('%s: what was rejected is in no batch of the learner', async (_, pipeline) => {
  const trained: LearnerSequence[] = [];
  const { engine } = abcPolicy({
    learner: learner => ({
      ...learner,
      forwardBackward(batch, loss) {
        trained.push(...batch.sequences);
        return learner.forwardBackward(batch, loss);
      },
    }),
  });
  const run = train({
    policy: engine,
    agent: choosy,
    tasks,
    algorithm: grpo(),
    pipeline,
    groupSize: 8,
    groupsPerStep: 4,
    steps: 4,
    optimizer: { learningRate: 0.1 },
    limits: { maxNewTokens: 3 },
  });
  const rejected = new Set<string>();
  const kept = new Set<string>();
  let counted = 0;
  for await (const { episodes, metrics } of run) {
    counted += metrics['rollout/rejected'] ?? 0;
    for (const episode of episodes) {
      const into = episode.outcome.kind === 'rejected' ? rejected : kept;
      for (const { tokens } of toTrajectories(episode)) into.add(key(tokens));
    }
  }
  expect(counted).toBeGreaterThan(10);
  expect(rejected.size).toBeGreaterThan(5);
  expect(trained.length).toBeGreaterThan(30);
  const learned = new Set(trained.map(({ tokens }) => key(tokens)));
  expect([...learned].filter(one => rejected.has(one))).toEqual([]);
  expect([...learned].filter(one => !kept.has(one))).toEqual([]);
});
