import { evaluatePolicy, readJsonl, type TaskInput } from 'tokenloop';
import { onnxPolicy } from 'tokenloop/onnx';

const policy = await onnxPolicy({ model: 'examples/single-turn/model' });
const { metrics, episodes } = await evaluatePolicy({
  policy,
  tasks: readJsonl<TaskInput>('examples/single-turn/test.jsonl', ({ prompt, label }) => ({
    prompt: [{ role: 'user', content: String(prompt) }],
    label,
  })),
  reward: ({ text, label }) => (text === `a${label}` ? 1 : 0),
  samples: 4,
  temperature: 1,
});
console.log(metrics['eval/test/pass1'], metrics['eval/test/pass4'], episodes.length);
await policy.close();
