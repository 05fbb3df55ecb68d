import { EpisodeRecorder } from '../../src/episode/episode.ts';
import { tensorboardTracker } from '../../src/tracking/tensorboard.ts';

/** Writes the run that event_files.py --check reads: killed after step 4, resumed from the checkpoint of step 2. */
const dir = process.argv[2]!;

function episode(id: string) {
  const task = { id: 't', prompt: 'p', label: '', metadata: {} };
  const recorder = new EpisodeRecorder({ id, task, group: 'g', sample: 0 });
  const prompt = recorder.feed(-1, 'prompt', Int32Array.of(112));
  const sampled = { tokens: Int32Array.of(97, 98), logprobs: Float32Array.of(-1, -1), versions: Int32Array.of(0, 0) };
  const segment = recorder.sampled(prompt, sampled);
  recorder.step({ segment, reward: 1, finishReason: 'stop' });
  return recorder.finish({ kind: 'done' });
}

const decode = (tokens: Int32Array) => String.fromCharCode(...tokens);
const killed = await tensorboardTracker({ dir, decode, config: 'a: 1' });
await killed.log({ step: 1, metrics: { 'train/reward': 0.25, 'train/kl': -1e-7 } });
await killed.log({ step: 2, metrics: { 'train/reward': 0.5 } });
await killed.episodes?.({ step: 2, phase: 'train', episodes: [episode('a'), episode('b')] });
await killed.log({ step: 3, metrics: { 'train/reward': 3 } });
await killed.log({ step: 4, metrics: { 'train/reward': 4 } });
const resumed = await tensorboardTracker({ dir, decode, resumeAfter: 2, config: 'a: 1' });
await resumed.log({ step: 3, metrics: { 'train/reward': 30 } });
await resumed.log({ step: 4, metrics: { 'train/reward': 40 } });
await resumed.close();
