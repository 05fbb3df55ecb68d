import { grpo, multiTurn, readJsonl, type TaskInput, train } from 'tokenloop';
import { makeEnvironment } from 'tokenloop/envs';
import { onnxPolicy } from 'tokenloop/onnx';

const run = train({
  policy: () => onnxPolicy({ model: 'examples/calculator-agent/model', separate: { sampler: 1, learner: 1 } }),
  tasks: readJsonl<TaskInput>('examples/calculator-agent/train.jsonl', row => row),
  agent: multiTurn(makeEnvironment('calculator'), { maxTurns: 3, maxNewTokens: 16 }),
  algorithm: grpo({ correction: { type: 'tis', low: 0.5, high: 5 } }),
  pipeline: { overlap: { queueSize: 2, maxStaleness: 2, partial: 'keep', whenStale: 'weigh' } },
  steps: Number(process.argv[2] ?? 150),
});
for await (const { index, metrics } of run) console.log(index, metrics['rollout/staleness_mean']);
