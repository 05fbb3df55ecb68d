import { multiTurn } from '../../src/agents/multi-turn.ts';
import { DEFAULT_SAMPLING, type GenerateRequest, type Generation, type Sampler } from '../../src/engines/contracts.ts';
import { immediate } from '../../src/rollout/admission.ts';
import { runGroups } from '../../src/rollout/groups.ts';
import { toTask } from '../../src/rollout/tasks.ts';
import type { Renderer } from '../../src/text/renderer.ts';

/** The same work for both sides: what the policy and the environment say in each episode. */
export interface Script {
  readonly turns: number;
  readonly prompt: string;
  /** Ids of every answer. */
  readonly answer: Int32Array;
  /** Per episode, per turn but the last. No two are equal, so that nobody tokenises one for another. */
  readonly feedbacks: readonly (readonly string[])[];
}

const PROMPT =
  'You are playing a guessing game. I think of a number between 1 and 100000, and you guess it. After each guess I tell you whether my number is higher or lower, and by how much you were wrong. Answer with one number, and nothing else. You have four guesses. Begin.\n';
const ANSWER =
  ' I guess that it is 4711, because it lies somewhere in the middle of the range that is left after the hints so far, and every half of it that remains is as likely as the other one is';

/** Four answers of 40 tokens, a prompt of about 60 and three hints of about 25: about 290 tokens an episode. */
export function guessingScript(episodes: number, renderer: Renderer): Script {
  const turns = 4;
  const hint = (episode: number, turn: number) =>
    `\nMy number is higher than your guess, which was wrong by ${(episode * 7919 + turn * 104_729) % 100_003}. Guess again, please.\n`;
  return {
    turns,
    prompt: PROMPT,
    answer: renderer.encode(ANSWER).slice(0, 40),
    feedbacks: Array.from({ length: episodes }, (_, episode) =>
      Array.from({ length: turns - 1 }, (_, turn) => hint(episode, turn)),
    ),
  };
}

/** Answers at once, always the same. */
function instantSampler(answer: Int32Array): Pick<Sampler, 'generate'> {
  return {
    generate: async (_: GenerateRequest): Promise<Generation> => ({
      tokens: answer.slice(),
      logprobs: new Float32Array(answer.length).fill(-1),
      versions: new Int32Array(answer.length),
      finishReason: 'length',
    }),
  };
}

export interface Played {
  readonly seconds: number;
  /** Of an episode. */
  readonly tokens: number;
}

/** All episodes of a script at the same time in this process, in groups of 8, on an engine that takes no time. */
export async function playInstantly({ turns, prompt, answer, feedbacks }: Script, renderer: Renderer): Promise<Played> {
  const samples = 8;
  const executor = multiTurn(() => {
    let hints: readonly string[] = [];
    return {
      reset: ({ prompt: observation, metadata }) => {
        hints = feedbacks[metadata.episode as number]!;
        return { observation };
      },
      step: ({ turn }) => ({
        reward: turn + 1 === turns ? 1 : 0,
        done: turn + 1 === turns,
        feedback: hints[turn] ?? '',
      }),
    };
  });
  const specs = Array.from({ length: feedbacks.length / samples }, (_, i) => ({
    task: toTask({ prompt, metadata: { episode: i * samples } }, i, 'bench'),
    group: `${i}@0`,
    samples,
    environmentSeed: i,
  }));
  const context = {
    executor,
    admission: immediate(instantSampler(answer)),
    contextLength: 4096,
    renderer,
    params: { ...DEFAULT_SAMPLING, maxTokens: answer.length },
    limits: { maxTurns: 8, maxNewTokens: answer.length, maxTokens: 4096, callTimeoutMs: 60_000 },
    seed: 1,
    signal: new AbortController().signal,
    log: () => undefined,
  };
  const began = performance.now();
  const groups = await runGroups(specs, context);
  const seconds = (performance.now() - began) / 1000;
  const episodes = groups.flatMap(group => group.episodes);
  const failed = episodes.find(({ outcome }) => outcome.kind !== 'done');
  if (failed) throw new Error(`an episode ended with ${JSON.stringify(failed.outcome)}`);
  return { seconds, tokens: episodes[0]!.segments.reduce((sum, segment) => sum + segment.tokens.length, 0) };
}
