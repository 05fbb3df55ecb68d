import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Episode, EpisodeRecorder } from '../episode/episode.ts';
import { parseEpisode, serializeEpisode } from '../episode/serialize.ts';
import { jsonlTracker } from './jsonl.ts';
import { JsonlFile } from './jsonl-file.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tokenloop-jsonl-'));
});
afterEach(() => rmSync(dir, { recursive: true }));
const read = (name: string) => readFileSync(join(dir, name), 'utf8');

function episode(id: string): Episode {
  const recorder = new EpisodeRecorder({
    id,
    task: { id: 't', prompt: 'p', label: '', metadata: {} },
    group: 'g',
    sample: 0,
  });
  recorder.feed(-1, 'prompt', Int32Array.of(1, 2));
  return recorder.finish({ kind: 'done' });
}

describe('jsonlTracker', () => {
  it('writes one flat object a record', async () => {
    const tracker = await jsonlTracker({ dir: join(dir, 'new/run') });
    await tracker.log({ step: 0, metrics: { 'eval/pass1': 0.5 } });
    await tracker.log({ step: 1, metrics: { 'train/reward': Number.NaN, 'train/kl': -1e-7 } });
    await tracker.close();
    expect(read('new/run/metrics.jsonl')).toBe(
      '{"step":0,"eval/pass1":0.5}\n{"step":1,"train/reward":"NaN","train/kl":-1e-7}\n',
    );
  });

  it('writes episodes that can be read back as they are', async () => {
    const tracker = await jsonlTracker({ dir, serialize: serializeEpisode });
    await tracker.episodes?.({ step: 4, phase: 'eval', episodes: [episode('a'), episode('b')] });
    await tracker.close();
    const lines = read('episodes.jsonl').trimEnd().split('\n');
    expect(lines.map(line => parseEpisode(line))).toEqual([episode('a'), episode('b')]);
    expect(JSON.parse(lines[1]!)).toMatchObject({ step: 4, phase: 'eval', id: 'b' });
  });

  it('starts empty, unless the run resumes', async () => {
    writeFileSync(join(dir, 'metrics.jsonl'), '{"step":1}\n');
    await (await jsonlTracker({ dir })).close();
    expect(read('metrics.jsonl')).toBe('');
  });

  it('resumes behind the step of the checkpoint, without later and half-written records', async () => {
    const kept = '{"step":1,"a":1}\n{"step":2,"a":2}\n{"step":2,"b":2}\n';
    writeFileSync(join(dir, 'metrics.jsonl'), `${kept}{"step":3,"a":3}\n{"step":4,"a`);
    const tracker = await jsonlTracker({ dir, resumeAfter: 2 });
    await tracker.log({ step: 3, metrics: { a: 4 } });
    await tracker.close();
    expect(read('metrics.jsonl')).toBe(`${kept}{"step":3,"a":4}\n`);
  });

  it('resumes at the cursor of the checkpoint, and searches where the file has no line end there', async () => {
    const first = await jsonlTracker({ dir, serialize: serializeEpisode });
    await first.log({ step: 1, metrics: { a: 1 } });
    await first.episodes?.({ step: 1, phase: 'train', episodes: [episode('a')] });
    const cursor = await first.cursor?.();
    const kept = [read('metrics.jsonl'), read('episodes.jsonl')];
    expect(cursor).toEqual({ metrics: kept[0]!.length, episodes: kept[1]!.length });
    await first.log({ step: 2, metrics: { a: 2 } });
    await first.close();
    for (const known of [cursor, { metrics: 3 }, { metrics: 1e6 }, 'nonsense', undefined]) {
      writeFileSync(join(dir, 'metrics.jsonl'), `${kept[0]}{"step":2,"a":3}\n`);
      const tracker = await jsonlTracker({ dir, serialize: serializeEpisode, resumeAfter: 1, cursor: known });
      await tracker.close();
      expect([read('metrics.jsonl'), read('episodes.jsonl')]).toEqual(kept);
    }
  });

  it('names a line that it cannot read when resuming', async () => {
    writeFileSync(join(dir, 'metrics.jsonl'), '{"step":1}\noops\n{"step":2}\n');
    await expect(jsonlTracker({ dir, resumeAfter: 2 })).rejects.toThrow(/metrics\.jsonl:2: not JSON; remove/);
    writeFileSync(join(dir, 'metrics.jsonl'), '{"stop":1}\n');
    await expect(jsonlTracker({ dir, resumeAfter: 2 })).rejects.toThrow(/metrics\.jsonl:1: no "step" number/);
  });
});

describe('JsonlFile', () => {
  it('keeps the order of calls that were not awaited', async () => {
    const file = await JsonlFile.open(join(dir, 'x.jsonl'));
    const numbers = Array.from({ length: 50 }, (_, step) => `{"step":${step}}`);
    await Promise.all(numbers.map(line => file.append([line])));
    await file.close();
    expect(read('x.jsonl')).toBe(numbers.map(line => `${line}\n`).join(''));
  });

  it('finds the place to resume in a file longer than one read, with characters that straddle reads', async () => {
    const lines = Array.from({ length: 3000 }, (_, step) =>
      JSON.stringify({ step, text: 'é'.repeat(500 + (step % 7)) }),
    );
    writeFileSync(join(dir, 'x.jsonl'), `${lines.join('\n')}\n`);
    const file = await JsonlFile.open(join(dir, 'x.jsonl'), { resumeAfter: 2500 });
    await file.close();
    expect(read('x.jsonl')).toBe(`${lines.slice(0, 2501).join('\n')}\n`);
  });
});
