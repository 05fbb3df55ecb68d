import { grpo, multiTurn, readJsonl, type TaskInput, train } from 'tokenloop';
import { makeEnvironment } from 'tokenloop/envs';
import { onnxPolicy } from 'tokenloop/onnx';

const run = train({
  policy: () => onnxPolicy({ model: 'examples/calculator-agent/model' }),
  tasks: readJsonl<TaskInput>('examples/calculator-agent/train.jsonl', row => row),
  agent: multiTurn(makeEnvironment('calculator'), { maxTurns: 3, maxNewTokens: 16 }),
  algorithm: grpo(),
  groupsPerStep: 32,
  steps: Number(process.argv[2] ?? 150),
  optimizer: { learningRate: 4e-4, schedule: 'cosine_with_min_lr' },
  output: 'runs/program/model',
});
for await (const { index, metrics } of run) console.log(index, metrics['rollout/reward_mean']);
