import { expect, it } from 'vitest';
import { toTrajectories } from '../../episode/trajectory.ts';
import { validateEpisode } from '../../episode/validate.ts';
import { type TestContextOptions, testContext } from '../../testing/executor-context.ts';
import type { BundledGenerationOutputs, EnvironmentService, QueueAgent } from './contracts.ts';
import { queueAgent } from './queue-agent.ts';
import { agentMaker, registerAgent, registerEnvironmentService, serviceMaker } from './registry.ts';

const task = { id: 't', prompt: 'p', label: 'right', metadata: {} };
const silent: EnvironmentService = {
  reset: () => [null, {}],
  step: () => [null, 0, true, false, {}],
};

async function run(collect: QueueAgent['collectTrajectory'], more: TestContextOptions = {}) {
  const context = testContext({ answers: (_, i) => `a${i}`, ...more });
  const agent = () => ({ collectTrajectory: collect }) as QueueAgent<never>;
  const episode = await queueAgent({ agent, environment: () => silent }).run(task, context);
  validateEpisode(episode);
  return { episode, context, decode: (tokens: ArrayLike<number>) => context.renderer.decode(tokens) };
}
const bytes = (text: string) => [...Buffer.from(text)];

it('gives what was generated with the fields of a bundle', async () => {
  let got: BundledGenerationOutputs | undefined;
  await run(async ({ qid, promptIds }, _, obs, act) => {
    await obs.put([qid, [...promptIds, 120], { max_new_tokens: 2 }]);
    got = await act.get();
    return [{ sequence: got.seqs[0]!, reward: 1 }];
  });
  expect(got).toMatchObject({
    qid: 'episode-0',
    promptIds: bytes('px'),
    outputIds: [bytes('a0')],
    seqs: [bytes('pxa0')],
    noEos: [true],
    versionStart: [0],
    versionEnd: [0],
    seqlens: [4],
    promptLen: 2,
    prompt_ids: bytes('px'),
    prompt_len: 2,
  });
  // Of the next token: one shorter than the sequence, 0 at the positions of the prompt.
  const uniform = expect.closeTo(-Math.log(260), 5);
  expect(got!.logprobs).toEqual([[0, uniform, uniform]]);
});

it('records what the agent forwards behind the sampled tokens as fed, with the reward of each turn', async () => {
  const { episode, decode } = await run(async ({ qid, promptIds }, _, obs, act) => {
    await obs.put([qid, promptIds]);
    const first = await act.get();
    await obs.put([qid, [...first.seqs[0]!, ...bytes('no')]]);
    const second = await act.get();
    return [
      { sequence: first.seqs[0]!, reward: 0.25 },
      { sequence: second.seqs[0]!, reward: 1, metrics: { right: 1 } },
    ];
  });
  expect(episode.segments.map(({ source, tokens }) => [source, decode(tokens)])).toEqual([
    ['prompt', 'p'],
    ['policy', 'a0'],
    ['environment', 'no'],
    ['policy', 'a1'],
  ]);
  expect(episode.steps.map(({ reward }) => reward)).toEqual([0.25, 1]);
  expect(episode.metrics).toEqual({ turns: 2, right: 1 });
  expect(episode.outcome).toEqual({ kind: 'done' });
});

it('opens a branch for any other context, and keeps the returned paths alone', async () => {
  const collect =
    (give: (a: number[], b: number[]) => number[][]): QueueAgent['collectTrajectory'] =>
    async ({ qid, promptIds }, _, obs, act) => {
      await obs.put([qid, promptIds]);
      const first = (await act.get()).seqs[0]!;
      // The history without the last token that was sampled.
      await obs.put([qid, [...first.slice(0, -1), ...bytes('!')]]);
      const second = (await act.get()).seqs[0]!;
      return give([...first], [...second]).map(sequence => ({ sequence, reward: 1 }));
    };
  const both = await run(collect((a, b) => [a, b]));
  expect(toTrajectories(both.episode).map(({ tokens }) => both.decode(tokens))).toEqual(['pa0', 'pa0!a1']);
  expect(both.episode.segments.map(({ parent }) => parent)).toEqual([-1, 0, 0, 2]);
  expect(both.episode.leaves ?? 'parts').toBe('parts');
  const one = await run(collect((_, b) => [b]));
  expect(toTrajectories(one.episode).map(({ tokens }) => one.decode(tokens))).toEqual(['pa0!a1']);
});

it('takes several samples of one context for alternatives', async () => {
  const { episode } = await run(async ({ qid, promptIds }, _, obs, act) => {
    await obs.put([qid, promptIds, { n: 3 }]);
    const { seqs } = await act.get();
    return seqs.map((sequence, i) => ({ sequence, reward: i }));
  });
  expect(episode.leaves).toBe('alternatives');
  expect(episode.steps.map(({ reward }) => reward)).toEqual([0, 1, 2]);
  expect(episode.score).toBe(1);
});

it('serves requests that are there at the same time in their order', async () => {
  const { episode, context } = await run(async ({ qid, promptIds }, _, obs, act) => {
    await Promise.all(['x', 'y'].map(text => obs.put([`${qid}${text}`, [...promptIds, ...bytes(text)]])));
    const bundles = [await act.get(), await act.get()];
    expect(bundles.map(({ qid }) => qid)).toEqual(['episode-0x', 'episode-0y']);
    return bundles.map(({ seqs }) => ({ sequence: seqs[0]!, reward: 1 }));
  });
  expect(context.sampler.requests).toHaveLength(2);
  expect(episode.steps).toHaveLength(2);
});

it('rejects an episode of which the agent returns nothing', async () => {
  const { episode } = await run(async ({ qid, promptIds }, _, obs, act) => {
    await obs.put([qid, promptIds]);
    await act.get();
    return [];
  });
  expect(episode.outcome).toMatchObject({ kind: 'rejected' });
});

it.each<[string, QueueAgent['collectTrajectory'], object]>([
  ['throws', async () => Promise.reject(new Error('broken')), { failure: 'environment' }],
  ['makes tokens up', async () => [{ sequence: [1, 2], reward: 1 }], { failure: 'recorder' }],
  [
    'has no token',
    async ({ qid }, _, obs, act) => [await obs.put([qid, []]), await act.get()] as never,
    { failure: 'environment' },
  ],
  ['waits for nothing', async (_, __, ___, act) => [await act.get()] as never, { failure: 'timeout' }],
  [
    'samples several times and rewrites',
    async ({ qid, promptIds }, _, obs, act) => {
      await obs.put([qid, promptIds, { n: 2 }]);
      await act.get();
      await obs.put([qid, [9, 9]]);
      return [await act.get()] as never;
    },
    { failure: 'recorder' },
  ],
])('fails an episode whose agent %s', async (_, collect, outcome) => {
  const { episode } = await run(collect, { limits: { episodeTimeoutMs: 50 } });
  expect(episode.outcome).toMatchObject({ kind: 'failed', ...outcome });
});

it('ends at the limits of turns and of tokens', async () => {
  const forever: QueueAgent['collectTrajectory'] = async ({ qid, promptIds }, _, obs, act) => {
    for (let tokens = promptIds; ; tokens = (await act.get()).seqs[0]!) await obs.put([qid, tokens]);
  };
  const turns = await run(forever, { limits: { maxTurns: 3 } });
  expect(turns.episode.outcome).toEqual({ kind: 'truncated', reason: 'turns' });
  expect(turns.episode.steps).toHaveLength(3);
  const tokens = await run(forever, { limits: { maxTokens: 6 } });
  expect(tokens.episode.outcome).toEqual({ kind: 'truncated', reason: 'tokens' });
});

it('knows agents and environments by name, with declared arguments', () => {
  class Agent {
    static readonly args = { my_param: 1, name: 'x' };
    readonly given: object;
    constructor(given: object) {
      this.given = given;
    }
    collectTrajectory = async () => [];
  }
  class Service {
    reset = () => [null, {}] as const;
    step = () => [null, 0, true, false, {}] as const;
  }
  registerAgent('an-agent', Agent);
  registerEnvironmentService('a-service', Service);
  expect(() => registerAgent('an-agent', Agent)).toThrow(/'an-agent' is registered already/);
  expect(() => registerEnvironmentService('a-service', Service)).toThrow(/registered already/);
  expect(agentMaker('an-agent', { my_param: 5 })()).toMatchObject({ given: { my_param: 5, name: 'x' } });
  expect(() => agentMaker('an-agent', { my_parm: 5 })).toThrow(/no argument my_parm; did you mean my_param\?/);
  expect(() => agentMaker('an-agent', { my_param: 'five' })).toThrow(/my_param/);
  expect(() => agentMaker('an-agnt')).toThrow(/did you mean an-agent\?/);
  expect(() => serviceMaker('a-service', { x: 1 })).toThrow(/it takes none/);
});
