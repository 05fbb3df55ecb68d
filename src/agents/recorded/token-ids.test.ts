import { afterEach, describe, expect, it } from 'vitest';
import type { PolicySegment } from '../../episode/episode.ts';
import { testContext } from '../../testing/executor-context.ts';
import { type RecordedRun, recordedAgent } from './recorded-agent.ts';
import type { RecordingServerOptions } from './server.ts';

/** Ids of what was sampled in the replies, in vLLM's and in NeMo Gym's form, and addresses that many episodes share. */

// biome-ignore lint/suspicious/noExplicitAny: replies are read as a client in JavaScript reads them
type Json = any;

async function post(url: string, body: unknown, key = ''): Promise<Json> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: reply.status, ...((await reply.json()) as object) };
}

const closing: { close?(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close?.();
});

async function run(program: (at: RecordedRun) => Promise<void>, server: RecordingServerOptions = {}) {
  const agent = recordedAgent({
    server,
    run: async (_, at) => {
      await program(at);
      return 1;
    },
  });
  closing.push(agent);
  const context = testContext({ answers: (_, i) => ['four', 'five'][i] ?? 'six' });
  return agent.run({ id: 't', prompt: '2+2', label: '', metadata: {} }, context);
}
const sampled = (episode: Awaited<ReturnType<typeof run>>) =>
  episode.segments.filter((one): one is PolicySegment => one.source === 'policy');
const messages = [{ role: 'user', content: '2+2' }];

describe('token ids', () => {
  it('are given as vLLM gives them to a chat client that asks for them, and to no other', async () => {
    let asked: Json;
    let plain: Json;
    const episode = await run(async ({ baseURL, apiKey }) => {
      const more = { return_token_ids: true, return_tokens_as_token_ids: true, logprobs: true };
      asked = await post(`${baseURL}/chat/completions`, { model: 'policy', messages, ...more }, apiKey);
      plain = await post(`${baseURL}/chat/completions`, { model: 'policy', messages, logprobs: true }, apiKey);
    });
    const [answer] = sampled(episode);
    expect(asked.prompt_token_ids).toEqual([...episode.segments[0]!.tokens]);
    expect(asked.choices[0].token_ids).toEqual([...answer!.tokens]);
    const named = asked.choices[0].logprobs.content.map(({ token }: { token: string }) => token);
    expect(named).toEqual([...answer!.tokens].map(id => `token_id:${id}`));
    expect(plain).not.toHaveProperty('prompt_token_ids');
    expect(plain.choices[0]).not.toHaveProperty('token_ids');
    expect(plain.choices[0].logprobs.content[0].token).toBe('f');
  });

  it('are on the last item of an answer in the Responses of a shared address', async () => {
    let first: Json;
    let second: Json;
    const episode = await run(
      async ({ baseURL, name }) => {
        const { origin } = new URL(baseURL);
        const metadata = { tokenloop_episode: name };
        first = await post(`${origin}/v1/responses`, { model: 'any', input: messages, metadata });
        const input = [...messages, ...first.output, { role: 'user', content: 'and one?' }];
        second = await post(`${origin}/ng-rollout/${name}/training-token-capture/v1/responses`, {
          model: 'any',
          input,
        });
      },
      { shared: true, models: ['*'] },
    );
    const [one, two] = sampled(episode);
    expect(first.output).toHaveLength(1);
    expect(first.output[0]).toMatchObject({
      type: 'message',
      prompt_token_ids: [...episode.segments[0]!.tokens],
      generation_token_ids: [...one!.tokens],
      generation_log_probs: [...one!.logprobs],
    });
    // Token in, token out: the second prompt goes on with what was sampled.
    const before = [...first.output[0].prompt_token_ids, ...first.output[0].generation_token_ids];
    expect(second.output[0].prompt_token_ids.slice(0, before.length)).toEqual(before);
    expect(second.output[0].generation_token_ids).toEqual([...two!.tokens]);
  });
});

describe('a shared address', () => {
  it('answers nobody who names no open episode, and is not there unless it is asked for', async () => {
    const replies: Json[] = [];
    await run(
      async ({ baseURL, apiKey, name }) => {
        const { origin } = new URL(baseURL);
        const body = { model: 'policy', messages };
        replies.push(await post(`${origin}/v1/chat/completions`, body, apiKey));
        replies.push(await post(`${origin}/v1/chat/completions`, { ...body, tokenloop_episode: 'other' }, apiKey));
        replies.push(await post(`${origin}/ng-rollout/x/v1/chat/completions`, body));
        replies.push(await post(`${origin}/v1/chat/completions`, { ...body, tokenloop_episode: name }));
      },
      { shared: true },
    );
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401, 200]);
    expect(replies[0].error.message).toMatch(/metadata needs tokenloop_episode/);
    await run(async ({ baseURL, apiKey, name }) => {
      const { origin } = new URL(baseURL);
      replies.push(await post(`${origin}/v1/chat/completions`, { model: 'policy', messages, tokenloop_episode: name }));
      replies.push(await post(`${baseURL}/chat/completions`, { model: 'policy', messages }, apiKey));
    });
    // As vllm_model of NeMo Gym looks for it.
    expect(replies[3].choices[0].message.generation_token_ids).toHaveLength(5);
    expect(replies.slice(4).map(({ status }) => status)).toEqual([404, 200]);
  });
});
