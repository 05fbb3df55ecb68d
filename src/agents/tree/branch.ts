import type { Action, Environment, EnvironmentFactory, StepResult } from '../../envs/contracts.ts';
import type { Outcome } from '../../episode/episode.ts';
import { EpisodeError } from '../../episode/failure.ts';
import { checkEnvironment, checkStepResult } from '../checks.ts';
import type { Answer, Begun, Session } from '../session.ts';
import { actionOf, ask, begin, makeEnvironment, reset, step, type TurnLimits, type TurnState } from '../turns.ts';

/** One turn that was taken: enough to take it again in another environment. */
interface Taken {
  readonly action: Action;
  /** What the environment answered, as text: taken again it must give the same. */
  readonly echo: string;
}

/** A path being grown: where it stands and how it came there. */
export interface Branch {
  readonly state: TurnState;
  readonly taken: readonly Taken[];
  /** An answer that is begun already: its tokens end the context. */
  readonly begun?: Begun;
  /** Other branches go on from the same place. */
  readonly hasSiblings: boolean;
  /** Sum of the rewards on the path. */
  readonly reward: number;
}

/** A sampled answer, and where it was sampled: what it takes to sample another in its place. */
export interface Origin extends Branch {
  readonly answer: Answer;
  /** A copy of the environment as it was then, where it has `fork`. */
  readonly snapshot: Environment | undefined;
}

export interface Ended {
  readonly outcome: Outcome;
  readonly reward: number;
  readonly score: number | undefined;
}

/**
 * Grows paths of one episode turn by turn. All paths of a round are sampled in one tick and then stepped, so that
 * neither seeds nor batches depend on how long an environment takes.
 */
export class Grower {
  readonly #session: Session;
  readonly #factory: EnvironmentFactory;
  readonly #limits: TurnLimits;
  readonly #revisits: boolean;
  readonly #topLogprobs: number;
  /** Tokens sampled so far. */
  sampled = 0;
  /** By policy segment. */
  readonly origins = new Map<number, Origin>();
  /** By last policy segment: the paths that have ended. */
  readonly ended = new Map<number, Ended>();

  /**
   * @param more.revisits answers will be sampled anew where their environments have moved on
   * @param more.topLogprobs so many log-probabilities are asked for at each token
   */
  constructor(
    session: Session,
    factory: EnvironmentFactory,
    limits: TurnLimits,
    more: { readonly revisits: boolean; readonly topLogprobs: number },
  ) {
    this.#session = session;
    this.#factory = factory;
    this.#limits = limits;
    this.#revisits = more.revisits;
    this.#topLogprobs = more.topLogprobs;
  }

  async root(): Promise<Branch> {
    const environment = await makeEnvironment(this.#session, this.#factory);
    return { state: await begin(this.#session, environment), taken: [], hasSiblings: false, reward: 0 };
  }

  /** One turn of every branch. Returns those that go on, in their order. */
  async advance(branches: readonly Branch[]): Promise<Branch[]> {
    const topLogprobs = this.#topLogprobs;
    const asked = branches.map(({ state, begun }) => ask(this.#session, state, this.#limits, { begun, topLogprobs }));
    const answers = await allOf(asked);
    for (const answer of answers) this.sampled += answer.generation.tokens.length;
    const stepped = await allOf(branches.map((branch, i) => this.#step(branch, answers[i]!)));
    return stepped.flatMap(branch => branch ?? []);
  }

  /** Grows the branches to their ends. */
  async finish(branches: readonly Branch[]): Promise<void> {
    for (let live = branches; live.length > 0; ) live = await this.advance(live);
  }

  /** `copies` branches in place of one, each with an environment of its own; the first keeps the one there is. */
  async fork(branch: Branch, copies: number): Promise<Branch[]> {
    if (copies === 1) return [branch];
    const first = { ...branch, hasSiblings: true };
    const others = Array.from({ length: copies - 1 }, () =>
      this.#withEnvironment(first, branch.state.environment, branch.state.leaf),
    );
    return [first, ...(await allOf(others))];
  }

  /**
   * A branch that samples the answer in `segment` anew from its token `at` on. The answer is cut in two there, if it is
   * not its first token. Returns the segment that holds the rest, too.
   */
  async regrow(segment: number, at: number): Promise<{ readonly branch: Branch; readonly rest: number }> {
    const origin = this.origins.get(segment)!;
    const { generation } = origin.answer;
    const before = origin.begun?.tokens ?? new Int32Array(0);
    const begun = { tokens: Int32Array.from([...before, ...generation.tokens.subarray(0, at)]) };
    const rest = at === 0 ? segment : this.#split(segment, at, begun);
    const leaf = at === 0 ? origin.state.leaf : segment;
    this.origins.set(rest, { ...this.origins.get(rest)!, hasSiblings: true });
    const branch = await this.#withEnvironment({ ...origin, hasSiblings: true }, origin.snapshot, leaf);
    return { branch: begun.tokens.length > 0 ? { ...branch, begun } : branch, rest };
  }

  #split(segment: number, at: number, begun: Begun): number {
    const origin = this.origins.get(segment)!;
    const rest = this.#session.recorder.split(segment, at);
    // What was sampled behind the segment now is behind its rest.
    for (const [id, other] of this.origins) {
      if (other.state.leaf === segment) this.origins.set(id, { ...other, state: { ...other.state, leaf: rest } });
    }
    const part = (id: number, from: number, to?: number): Answer => {
      const { generation } = origin.answer;
      const { tokens, logprobs, versions, topLogprobs } = generation;
      const cut = {
        tokens: tokens.slice(from, to),
        logprobs: logprobs.slice(from, to),
        versions: versions.slice(from, to),
        topLogprobs: topLogprobs?.slice(from, to),
      };
      return { ...origin.answer, segment: id, generation: { ...generation, ...cut } };
    };
    this.origins.set(segment, { ...origin, answer: part(segment, 0, at) });
    this.origins.set(rest, { ...origin, begun, state: { ...origin.state, leaf: segment }, answer: part(rest, at) });
    const ended = this.ended.get(segment);
    if (ended !== undefined) {
      this.ended.delete(segment);
      this.ended.set(rest, ended);
    }
    return rest;
  }

  async #step(branch: Branch, answer: Answer): Promise<Branch | undefined> {
    const { state, taken } = branch;
    const snapshot = this.#revisits && state.environment.fork ? await this.#copyOf(state.environment) : undefined;
    this.origins.set(answer.segment, { ...branch, answer, snapshot });
    // The transcript moves on with the step, and others may start from where it is now.
    const own = { ...state, transcript: state.transcript.clone() };
    // A copy: what the policy saw is decoded now, before a split gives other tokens to the same segment.
    const action = { ...actionOf(this.#session, state, answer) };
    const { result, outcome, next } = await step(this.#session, own, answer, this.#limits);
    const reward = branch.reward + result.reward;
    if (outcome !== undefined) {
      this.ended.set(answer.segment, { outcome, reward, score: result.score });
      return undefined;
    }
    return { state: next, taken: [...taken, { action, echo: echoOf(result) }], hasSiblings: false, reward };
  }

  /** The branch at `leaf` with an environment of its own: a copy of `source`, or a new one that came the same way. */
  async #withEnvironment(branch: Branch, source: Environment | undefined, leaf: number): Promise<Branch> {
    const environment = source?.fork === undefined ? await this.#replayed(branch) : await this.#copyOf(source);
    const { begun: _, ...rest } = branch;
    return { ...rest, state: { ...branch.state, environment, leaf, transcript: branch.state.transcript.clone() } };
  }

  #copyOf(source: Environment): Promise<Environment> {
    const session = this.#session;
    return session.call('environment', 'environment.fork', async () => {
      const copy = checkEnvironment(await source.fork!());
      if (copy.close !== undefined) session.onEnd('environment.close', () => copy.close?.());
      return copy;
    });
  }

  async #replayed({ taken }: Branch): Promise<Environment> {
    const session = this.#session;
    const environment = await makeEnvironment(session, this.#factory);
    await reset(session, environment);
    for (const { action, echo } of taken) {
      const result = await session.call('environment', 'environment.step', async () =>
        checkStepResult(await environment.step(action)),
      );
      if (echoOf(result) === echo) continue;
      throw new EpisodeError(
        'environment',
        `turn ${action.turn} taken again gave ${echoOf(result)} where it gave ${echo} before; an environment in a ` +
          'search must answer the same to the same actions and seed, or have fork()',
      );
    }
    return environment;
  }
}

function echoOf({ reward, done, feedback, stateKey }: StepResult): string {
  return JSON.stringify({ reward, done, feedback, stateKey });
}

/** All results; an error only after every call has ended, so that nothing is recorded behind its back. */
async function allOf<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(calls);
  return Promise.all(calls);
}
