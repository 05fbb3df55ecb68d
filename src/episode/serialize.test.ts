import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recorded } from '../../tests/support/episodes.ts';
import { type Episode, EpisodeRecorder } from './episode.ts';
import { readEpisodes } from './read.ts';
import { parseEpisode, serializeEpisode } from './serialize.ts';

function example(logprobs: readonly number[] = [-0.1, -2], reward = 1): Episode {
  const task = { id: 't', prompt: 'p', label: 'l', metadata: { row: 1 } };
  const recorder = new EpisodeRecorder({ id: 'e', task, group: 'g', sample: 0 });
  const root = recorder.feed(-1, 'prompt', Int32Array.of(1));
  const segment = recorder.sampled(root, {
    tokens: new Int32Array(logprobs.length),
    logprobs: Float32Array.from(logprobs),
    versions: new Int32Array(logprobs.length),
  });
  recorder.step({ segment, reward, finishReason: 'stop' });
  return recorder.finish({ kind: 'done' }, { score: reward });
}

/** The line of the example after a change to its JSON. */
function changed(change: (line: { segments: object[] } & Record<string, unknown>) => void): string {
  const line = JSON.parse(serializeEpisode(example()));
  change(line);
  return JSON.stringify(line);
}

describe('serializeEpisode', () => {
  it('is read back exactly', () => {
    fc.assert(
      fc.property(recorded(), ({ episode }) => {
        const line = serializeEpisode(episode);
        expect(line).not.toContain('\n');
        expect(parseEpisode(line)).toStrictEqual(episode);
      }),
    );
  });

  it('keeps every float32 bit for bit, and writes no digit too many', () => {
    const bits = fc.integer({ min: 0, max: 0xff_ff_ff_ff }).map(n => new Float32Array(Uint32Array.of(n).buffer)[0]!);
    fc.assert(
      fc.property(fc.array(bits), values => {
        const { segments } = parseEpisode(serializeEpisode(example(values)));
        expect(segments[1]).toHaveProperty('logprobs', Float32Array.from(values));
      }),
    );
    expect(serializeEpisode(example([-0.1, -2, -Infinity, NaN, -0]))).toContain(
      '"logprobs":[-0.1,-2,"-Infinity","NaN","-0"]',
    );
  });

  it('keeps rewards that JSON cannot write', () => {
    for (const reward of [-0, Number.NaN, Number.POSITIVE_INFINITY, 0.1 + 0.2, 5e-324]) {
      const { steps, score } = parseEpisode(serializeEpisode(example([-1], reward)));
      expect([steps[0]!.reward, score]).toEqual([reward, reward]);
    }
  });
});

describe('parseEpisode', () => {
  it.each<[string, string, RegExp]>([
    ['a torn line', serializeEpisode(example()).slice(0, 40), /^log:3: not JSON: /],
    ['a line of something else', '{"step":1}', /^log:3: not an episode: its format is undefined/],
    ['null', 'null', /not an episode/],
    ['another version', changed(line => Object.assign(line, { version: 2 })), /version 2; .* reads version 1$/],
    ['a missing field', changed(line => delete line.group), /^log:3: group: expected string, got nothing$/],
    [
      'a wrong token',
      changed(({ segments }) => Object.assign(segments, [{ parent: -1, source: 'prompt', tokens: [1.5] }])),
      /^log:3: segments\[0\]\.tokens\[0\]: .* got 1\.5/,
    ],
    [
      'an unknown failure',
      changed(line => Object.assign(line, { outcome: { kind: 'failed', failure: 'x', message: 'm', step: 0 } })),
      /^log:3: outcome\.failure: .* got "x"$/,
    ],
    [
      'a cycle',
      changed(({ segments }) => Object.assign(segments[0]!, { parent: 1 })),
      /^log:3: segment 0: parent is 1/,
    ],
    [
      'lengths that differ',
      changed(({ segments }) => Object.assign(segments[1]!, { logprobs: [-1] })),
      /^log:3: segment 1: 1 log-probs/,
    ],
  ])('says what is wrong with %s', (_, line, message) => {
    expect(() => parseEpisode(line, 'log:3')).toThrow(message);
  });
});

describe('readEpisodes', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'episodes-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const line = serializeEpisode(example());

  async function read(content: string, onIncomplete?: (message: string) => void): Promise<Episode[]> {
    const path = join(directory, 'episodes.jsonl');
    writeFileSync(path, content);
    const episodes: Episode[] = [];
    for await (const episode of readEpisodes(path, onIncomplete ? { onIncomplete } : {})) episodes.push(episode);
    return episodes;
  }

  it('reads whole files, with or without the last line break, also across chunks', async () => {
    expect(await read('')).toEqual([]);
    expect(await read(`${line}\n${line}\n`)).toStrictEqual([example(), example()]);
    const reports: string[] = [];
    expect(await read(`${line}\n${line}`, report => reports.push(report))).toHaveLength(2);
    const long = serializeEpisode({ ...example(), group: 'é'.repeat(100_000) });
    const [first, second] = await read(`${long}\n${line}\n`, report => reports.push(report));
    expect([first!.group.length, second]).toEqual([100_000, example()]);
    expect(reports).toEqual([]);
  });

  it('leaves out a half-written last line, never silently', async () => {
    const torn = `${line}\n${line.slice(0, 50)}`;
    const reports: string[] = [];
    expect(await read(torn, report => reports.push(report))).toHaveLength(1);
    expect(reports).toEqual([expect.stringMatching(/episodes\.jsonl:2: half-written last line of 50 characters/)]);
    await expect(read(torn)).rejects.toThrow(/episodes\.jsonl:2: not JSON/);
  });

  it('does not take a broken line for a half-written one', async () => {
    const ignore = () => undefined;
    await expect(read(`${line}\n${line.slice(0, 50)}\n${line}\n`, ignore)).rejects.toThrow(/jsonl:2: not JSON/);
    await expect(read(`${line.slice(0, 50)}\n`, ignore)).rejects.toThrow(/jsonl:1: not JSON/);
    await expect(read(`${line}\n{"format":"other"}`, ignore)).rejects.toThrow(/jsonl:2: not an episode/);
  });

  it('rejects a missing file with its path', async () => {
    const episodes = readEpisodes(join(directory, 'absent.jsonl'));
    await expect(episodes.next()).rejects.toThrow(/ENOENT.*absent\.jsonl/);
  });
});
