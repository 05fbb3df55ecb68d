import { exampleSequences, sft } from 'tokenloop';
import { onnxPolicy } from 'tokenloop/onnx';

// The directory has a configuration and a tokenizer and no weights: they are drawn from the seed.
const { learner, renderer, close } = await onnxPolicy({ model: 'examples/char-model/init', initSeed: 1 });
const conversations = ['1+1', '2+1', '2+2'].map(sum => [
  { role: 'user', content: sum },
  { role: 'assistant', content: `c${sum}` },
]);
const examples = conversations.map(messages => exampleSequences({ messages }, renderer));
const optimizer = { learningRate: 3e-3 };
for await (const { index, metrics } of sft({ learner, examples, steps: 20, batchSize: 3, seed: 1, optimizer })) {
  console.log(index, metrics['train/gpt_loss']);
}
await learner.export('runs/copies/model');
await close();
