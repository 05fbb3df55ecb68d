import { describe, expect, it } from 'vitest';
import { DEFAULT_SAMPLING, type GenerateRequest, type Learner } from '../engines/contracts.ts';
import { BYTE_SPECIAL, byteRenderer } from './byte-tokenizer.ts';
import { scriptedSampler } from './scripted-sampler.ts';

const renderer = byteRenderer();

function request(text: string, extra: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    tokens: renderer.encode(text),
    params: { ...DEFAULT_SAMPLING, maxTokens: 16, stopTokens: [BYTE_SPECIAL.end] },
    seed: 1,
    key: text,
    ...extra,
  };
}

const at = (version: number) => ({ version }) as Learner;

describe('scriptedSampler', () => {
  it('answers from the request and ends text with the stop token', async () => {
    const sampler = scriptedSampler({ answers: ({ tokens }) => `${renderer.decode(tokens)}!` });
    const generation = await sampler.generate(request('hi'));
    expect(generation.tokens).toEqual(Int32Array.from([...renderer.encode('hi!'), BYTE_SPECIAL.end]));
    expect(generation.finishReason).toBe('stop');
    expect(generation.logprobs).toEqual(new Float32Array(4).fill(-Math.log(260)));
    expect(generation.versions).toEqual(new Int32Array(4));
    expect(sampler.requests.map(r => r.key)).toEqual(['hi']);
  });

  it('cuts at maxTokens, at the context length, and after the first stop token', async () => {
    const sampler = scriptedSampler({ answers: () => 'abcdef', contextLength: 4 });
    const cut = await sampler.generate(request('x', { params: { ...DEFAULT_SAMPLING, maxTokens: 2 } }));
    expect([renderer.decode(cut.tokens), cut.finishReason]).toEqual(['ab', 'length']);
    const full = await sampler.generate(request('xy'));
    expect([renderer.decode(full.tokens), full.finishReason]).toEqual(['ab', 'length']);
    const stopped = await scriptedSampler({ answers: () => [97, BYTE_SPECIAL.end, 98] }).generate(request('x'));
    expect([[...stopped.tokens], stopped.finishReason]).toEqual([[97, BYTE_SPECIAL.end], 'stop']);
  });

  it('refuses what a real engine refuses', async () => {
    const sampler = scriptedSampler({ answers: () => '', contextLength: 4 });
    await expect(sampler.generate(request(''))).rejects.toThrow(/at least one token/);
    await expect(sampler.generate(request('four'))).rejects.toThrow(/no room in a context of 4/);
    await expect(sampler.generate(request('x', { tokens: Int32Array.of(999) }))).rejects.toThrow(/token 999/);
    const failing = scriptedSampler({
      answers: () => {
        throw new Error('out of memory');
      },
    });
    await expect(failing.generate(request('x'))).rejects.toThrow('out of memory');
  });

  it('lets the test decide the order of answers and the version of each token', async () => {
    const sampler = scriptedSampler({ answers: ({ key }) => `${key}${key}`, gated: true });
    const order: string[] = [];
    const calls = ['a', 'b'].map(key =>
      sampler.generate(request(key)).then(generation => {
        order.push(key);
        return generation;
      }),
    );
    await sampler.arrived(2);
    sampler.advance(0, 1);
    sampler.finish(1);
    await calls[1];
    expect(sampler.inFlight).toEqual([0]);
    await sampler.publish(at(3));
    sampler.finish(0);
    const first = await calls[0]!;
    expect(order).toEqual(['b', 'a']);
    expect([...first.versions]).toEqual([0, 3, 3]);
    expect(() => sampler.finish(0)).toThrow(/request 0 is not in flight/);
  });

  it('gives what there is when aborted', async () => {
    const sampler = scriptedSampler({ answers: () => 'abc', gated: true });
    const controller = new AbortController();
    const seen: number[] = [];
    const call = sampler.generate(request('x', { signal: controller.signal, onToken: token => seen.push(token) }));
    sampler.advance(0, 2);
    controller.abort();
    const generation = await call;
    expect([renderer.decode(generation.tokens), generation.finishReason]).toEqual(['ab', 'abort']);
    expect(seen).toEqual([...generation.tokens]);
  });

  it('holds every request while paused, or ends them', async () => {
    const sampler = scriptedSampler({ answers: () => 'abc' });
    await sampler.pause({ mode: 'keep' });
    const kept = sampler.generate(request('x'));
    await Promise.resolve();
    expect(sampler.inFlight).toEqual([0]);
    await sampler.publish(at(1));
    await sampler.resume();
    expect([...(await kept).versions]).toEqual([1, 1, 1, 1]);

    await sampler.pause({ mode: 'keep' });
    const ended = sampler.generate(request('y'));
    await sampler.pause({ mode: 'abort' });
    expect((await ended).finishReason).toBe('abort');
    await sampler.sleep();
    await expect(sampler.generate(request('z'))).rejects.toThrow(/asleep/);
    await sampler.wake();
    expect((await sampler.generate(request('z'))).finishReason).toBe('stop');
  });
});
