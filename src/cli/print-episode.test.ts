import { expect, it } from 'vitest';
import { EpisodeRecorder, type Outcome } from '../episode/episode.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { printEpisode } from './print-episode.ts';

const codec = byteRenderer();
const decode = (tokens: Int32Array) => codec.decode(tokens, { special: true });

function record(outcome: Outcome = { kind: 'done' }) {
  const recorder = new EpisodeRecorder({
    id: 'task-1/0',
    task: { id: 'task-1', prompt: '', label: '', metadata: {} },
    group: 'task-1',
    sample: 0,
  });
  const answer = (parent: number, said: string, reward: number, finishReason: 'stop' | 'length' = 'stop') => {
    const tokens = codec.encode(said);
    const segment = recorder.sampled(parent, {
      tokens,
      logprobs: new Float32Array(tokens.length),
      versions: new Int32Array(tokens.length),
    });
    recorder.step({ segment, reward, finishReason });
    return segment;
  };
  const prompt = recorder.feed(-1, 'prompt', codec.encode('6*7=\n'));
  const call = answer(prompt, 'calc(6*7)', 0);
  const result = recorder.feed(call, 'environment', codec.encode('42\nnext'));
  answer(result, '42', 1);
  answer(prompt, '41', -0.5, 'length');
  return printEpisode(recorder.finish(outcome), { decode, color: false });
}

it('shows who said what, the rewards and the branches', () => {
  expect(record()).toBe(`task-1/0: done, score 0.5
  6*7=
> calc(6*7)
< 42
  next
> 42
  reward 1
  (continues segment 0)
> 41
  reward -0.5, ended by length`);
});

it('says how it ended', () => {
  expect(record({ kind: 'truncated', reason: 'turns' })).toMatch(/^task-1\/0: truncated \(turns\), score/);
  expect(record({ kind: 'failed', failure: 'tool', message: 'no disk', step: 1 })).toMatch(
    /^task-1\/0: failed \(tool: no disk\), score/,
  );
});
