import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SAMPLING, type GenerateRequest, type Generation, type Sampler } from '../engines/contracts.ts';
import { lockstep } from './admission.ts';

/** Notes, tick by tick, which requests arrive together; answers when told to. */
function notingSampler() {
  const rounds: string[][] = [];
  const answers: (() => void)[] = [];
  let open: string[] | undefined;
  const sampler: Pick<Sampler, 'generate'> = {
    generate({ key }) {
      if (open === undefined) {
        open = [];
        rounds.push(open);
        queueMicrotask(() => {
          open = undefined;
        });
      }
      open.push(key);
      return new Promise<Generation>(resolve => {
        answers.push(() =>
          resolve({
            tokens: new Int32Array([1]),
            logprobs: new Float32Array(1),
            versions: new Int32Array(1),
            finishReason: 'stop',
          }),
        );
      });
    },
  };
  return { sampler: sampler as Sampler, rounds, answers };
}

const request = (key: string, signal?: AbortSignal): GenerateRequest => ({
  tokens: new Int32Array([1]),
  params: { ...DEFAULT_SAMPLING, maxTokens: 1 },
  seed: 0,
  key,
  signal,
});
const settle = () => new Promise(resolve => setImmediate(resolve));

describe('lockstep', () => {
  it('gives the sampler the same rounds whatever the order in which environments and sampler answer', async () => {
    const turns = [1, 3, 2, 3];
    const expected = [
      ['0#0', '1#0', '2#0', '3#0'],
      ['1#1', '2#1', '3#1'],
      ['1#2', '3#2'],
    ];
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.infiniteStream(fc.nat()), async (scheduler, choices) => {
        const { sampler, rounds, answers } = notingSampler();
        const admission = lockstep(sampler);
        const lanes = turns.map(() => admission.join());
        const episodes = Promise.all(
          turns.map(async (count, episode) => {
            for (let turn = 0; turn < count; turn++) {
              await scheduler.schedule(Promise.resolve(), `environment ${episode}`);
              await lanes[episode]!.generate(request(`${episode}#${turn}`));
            }
            await scheduler.schedule(Promise.resolve());
            lanes[episode]!.leave();
          }),
        );
        let ended = false;
        void episodes.then(() => {
          ended = true;
        });
        while (!ended) {
          if (scheduler.count() > 0) await scheduler.waitAll();
          const [index] = [choices.next().value! % Math.max(1, answers.length)];
          answers.splice(index, 1)[0]?.();
          await settle();
        }
        expect(rounds).toEqual(expected);
      }),
      { numRuns: 25 },
    );
  });

  it('does not wait for a request that was withdrawn', async () => {
    const { sampler, rounds } = notingSampler();
    const admission = lockstep(sampler);
    const [a, b] = [admission.join(), admission.join()];
    const abort = new AbortController();
    const withdrawn = a.generate(request('a', abort.signal));
    abort.abort();
    expect((await withdrawn).finishReason).toBe('abort');
    void b.generate(request('b'));
    await settle();
    expect(rounds).toEqual([]);
    a.leave();
    expect(rounds).toEqual([['b']]);
  });

  it('passes a failure of the sampler on and goes on', async () => {
    const sampler = {
      generate: ({ key }: GenerateRequest) =>
        key === 'bad' ? Promise.reject(new Error('no such token')) : Promise.resolve({ finishReason: 'stop' }),
    } as unknown as Sampler;
    const admission = lockstep(sampler);
    const [a, b] = [admission.join(), admission.join()];
    const results = await Promise.allSettled([a.generate(request('bad')), b.generate(request('good'))]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    a.leave();
    expect(await b.generate(request('again'))).toMatchObject({ finishReason: 'stop' });
    await expect(a.generate(request('late'))).rejects.toThrow(/late comes after its episode has ended/);
  });

  it('does not wait for an episode that waits for another', async () => {
    const { sampler, rounds, answers } = notingSampler();
    const admission = lockstep(sampler);
    const [a, b] = [admission.join(), admission.join()];
    let giveBack: (value: string) => void = () => undefined;
    const resource = new Promise<string>(resolve => {
      giveBack = resolve;
    });
    const waiting = b.aside(() => resource).then(() => b.generate(request('b')));
    void a.generate(request('a0'));
    await settle();
    expect(rounds).toEqual([['a0']]);
    answers.shift()!();
    await settle();
    giveBack('box');
    await settle();
    // It is back, so a round is complete only with both.
    expect(rounds).toHaveLength(1);
    void a.generate(request('a1'));
    await settle();
    expect(rounds.slice(1)).toEqual([['a1', 'b']]);
    for (const answer of answers.splice(0)) answer();
    await waiting;
  });
});
