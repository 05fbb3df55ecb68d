import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { resolve } from '../config/load.ts';
import { parseEpisode } from '../episode/serialize.ts';
import { byteRenderer } from '../testing/byte-tokenizer.ts';
import { scriptedSampler } from '../testing/scripted-sampler.ts';
import { command, serve } from './serve.ts';

it('opens episodes for programs of other processes and gives what was recorded', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'tokenloop-serve-'));
  const renderer = byteRenderer();
  const sampler = scriptedSampler({ answers: () => 'hello', codec: renderer });
  const argv = ['--model.model_name_or_path', 'none', '--serve.episodes', 'episodes.jsonl', '--agent.max_turns', '1'];
  const { values } = resolve(command.options, { argv, cwd });
  const interrupt = new AbortController();
  let told: (text: string) => void = () => undefined;
  const printed = new Promise<string>(done => {
    told = done;
  });
  let errors = '';
  const stream = (write: (text: string) => void) => ({
    write(text: string) {
      write(text);
      return true;
    },
  });
  const serving = serve(
    { sampler, renderer },
    {
      values: values as Parameters<typeof serve>[1]['values'],
      cwd,
      stdout: stream(text => told(text)),
      stderr: stream(text => {
        errors += text;
      }),
      interrupt: { signal: interrupt.signal } as Parameters<typeof serve>[1]['interrupt'],
    },
  );
  const [, url, key] = /^url (\S+)\nkey (\S+)\n$/.exec(await printed)!;
  const post = async (to: string, by: string, body: unknown) => {
    const headers = { authorization: `Bearer ${by}` };
    const response = await fetch(to, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, ...((await response.json()) as { base_url: string; api_key: string }) };
  };
  expect(await post(`${url}/episodes`, 'wrong', {})).toMatchObject({ status: 401 });
  const opened = await post(`${url}/episodes`, key!, { id: 'mine', label: 'l' });
  expect(opened).toMatchObject({ status: 200, id: 'mine', model: 'policy' });
  expect(await post(`${url}/episodes`, key!, { id: 'mine' })).toMatchObject({ status: 409 });
  const question = { model: 'policy', messages: [{ role: 'user', content: 'q' }] };
  const at = `${opened.base_url}/chat/completions`;
  expect(await post(at, opened.api_key, question)).toMatchObject({ choices: [{ message: { content: 'hello' } }] });
  // The key of the server is not that of an episode.
  expect(await post(at, key!, question)).toMatchObject({ status: 401 });
  expect(await post(`${url}/episodes/other/end`, key!, {})).toMatchObject({ status: 404 });
  const ended = await post(`${url}/episodes/mine/end`, key!, { reward: 0.5 });
  expect(ended).toMatchObject({ status: 200, outcome: { kind: 'done' }, reward: 0.5, steps: 1, sampled: 6 });
  const left = await post(`${url}/episodes`, key!, {});
  expect(left.status).toBe(200);
  interrupt.abort();
  await serving;
  const lines = readFileSync(join(cwd, 'episodes.jsonl'), 'utf8').trimEnd().split('\n');
  const episodes = lines.map(line => parseEpisode(line, 'episodes.jsonl'));
  expect(episodes.map(({ outcome, score }) => [outcome.kind, score])).toEqual([
    ['done', 0.5],
    ['failed', 0],
  ]);
  expect(errors).toContain('recorded episodes');
});
