import type { Awaitable, Game } from '../envs/contracts.ts';
import type { Outcome } from '../episode/episode.ts';
import type { Message } from '../episode/task.ts';
import type { Renderer } from '../text/renderer.ts';
import { checkGameReset, checkGameStep } from './checks.ts';
import type { Executor, Policy } from './contracts.ts';
import { type Answer, recordEpisode, Session } from './session.ts';
import { Transcript } from './transcript.ts';
import { turnLimits } from './turns.ts';

type Words = string | readonly Message[];

/**
 * Who sits in a seat: the policy that is trained; another policy, with the renderer of its tokenizer if that is another
 * one; or a function that answers what it was told since its last turn (a rule, a hosted model).
 */
export type Seat =
  | 'policy'
  | { readonly policy: Policy; readonly renderer?: Renderer | undefined }
  | ((told: Words, seat: string) => Awaitable<string>);

export interface SeatsOptions {
  readonly game: () => Awaitable<Game>;
  /** By the names that the game gives them. At least one is the policy's. */
  readonly seats: Readonly<Record<string, Seat>>;
  /** Turns of all seats together; the run's limit by default. */
  readonly maxTurns?: number | undefined;
  /** Tokens per answer; the run's limit by default. */
  readonly maxNewTokens?: number | undefined;
}

/**
 * Several seats take turns on one game. What a seat of the policy was shown and answered is a root-to-leaf path of its
 * own, whose steps carry its name and its own rewards; answers of other seats are in it only as what the game tells.
 * Baselines compare the same seat (`Step.seat`). A reward that a seat earns on another's turn goes to its last turn.
 * @throws Error when no seat is the policy's
 */
export function seats(options: SeatsOptions): Executor {
  const trained = new Set(Object.entries(options.seats).flatMap(([name, seat]) => (seat === 'policy' ? [name] : [])));
  if (trained.size === 0) throw new Error("no seat is the policy's: nothing would be trained; say 'policy' for one");
  return {
    name: 'seats',
    run: (task, context) => recordEpisode(task, context, session => play(session, options, trained)),
  };
}

async function play(session: Session, options: SeatsOptions, trained: ReadonlySet<string>): Promise<Outcome> {
  const { task, context, signal, recorder } = session;
  const { maxTurns, maxNewTokens } = turnLimits(options, context);
  const game = await session.call('environment', 'making the game', options.game);
  if (game.close !== undefined) session.onEnd('game.close', () => game.close?.());
  const { observations, next } = await session.call('environment', 'game.reset', async () =>
    checkGameReset(await game.reset(task, { seed: context.environmentSeed, signal })),
  );
  const views = new Map<string, View>();
  for (const [name, seat] of Object.entries(options.seats)) {
    const view = viewOf(session, name, seat, maxNewTokens);
    view.tell(observations[name]);
    views.set(name, view);
  }
  const viewAt = (name: string | undefined) => {
    const view = views.get(name ?? '');
    if (view) return view;
    throw new Error(`it names the seat ${JSON.stringify(name)}; there are ${[...views.keys()].join(', ')}`);
  };
  session.addMetrics({ turns: 0 });
  let name = next;
  for (let turn = 0; turn < maxTurns; turn++) {
    const view = await session.call('environment', 'game', () => viewAt(name));
    const said = await view.answer();
    if (said === undefined) return { kind: 'truncated', reason: 'tokens' };
    if (trained.has(name)) {
      recorder.step({ segment: said.segment, reward: 0, finishReason: said.finishReason, seat: name });
    }
    const { text, tokens, finishReason } = said;
    const seen = { actionText: text, actionTokens: tokens, observationText: said.seen, finishReason };
    const step = await session.call('environment', 'game.step', async () =>
      checkGameStep(await game.step({ ...seen, seat: name, label: task.label, task, turn, signal })),
    );
    for (const [seat, reward] of Object.entries(step.rewards ?? {})) {
      await session.call('environment', 'game.step', () => viewAt(seat));
      const last = recorder.steps.findLast(one => one.seat === seat);
      // A seat that never had a turn has no token to learn with.
      if (last !== undefined) last.reward += reward;
      if (trained.has(seat)) session.addMetrics({ [`reward_${seat}`]: reward });
    }
    session.addMetrics({ ...step.metrics, turns: 1 });
    session.score = step.score ?? session.score;
    for (const [seat, words] of Object.entries(step.feedback ?? {})) {
      (await session.call('environment', 'game.step', () => viewAt(seat))).tell(words);
    }
    if (step.done) return { kind: 'done' };
    name = step.next!;
  }
  return { kind: 'truncated', reason: 'turns' };
}

interface Said {
  /** Of the view's own recorder; −1 where nothing is recorded. */
  readonly segment: number;
  readonly text: string;
  readonly tokens: Int32Array;
  readonly finishReason: 'stop' | 'length' | 'abort';
  readonly seen: string;
}

/** The game as one seat sees it. */
interface View {
  tell(words: Words | undefined): void;
  /** undefined when an answer no longer fits the window. */
  answer(): Promise<Said | undefined>;
}

function viewOf(session: Session, name: string, seat: Seat, maxTokens: number): View {
  let told: Words | undefined;
  const tell = (words: Words | undefined) => {
    if (words !== undefined) told = told === undefined ? words : joined(told, words, name);
  };
  const take = (): Words => {
    if (told === undefined) throw new Error(`the seat ${name} has a turn and was told nothing since its last one`);
    const words = told;
    told = undefined;
    return words;
  };
  if (typeof seat === 'function') {
    const answer = async (): Promise<Said> => {
      const words = await session.call('environment', 'game', take);
      const text = await session.call('environment', `seat ${name}`, () => seat(words, name));
      return { segment: -1, text, tokens: new Int32Array(0), finishReason: 'stop', seen: asText(words) };
    };
    return { tell, answer };
  }
  // Another policy is recorded, too, since its context is kept that way, but in a recorder that nobody reads.
  const own =
    seat === 'policy'
      ? session
      : new Session(
          session.task,
          { ...session.context, policy: seat.policy, renderer: seat.renderer ?? session.context.renderer },
          session.signal,
        );
  let transcript: Transcript | undefined;
  let before: Answer | undefined;
  return {
    tell,
    async answer() {
      const words = await session.call('environment', 'game', take);
      let leaf: number | undefined;
      if (transcript === undefined || before === undefined) {
        transcript = new Transcript(own, words);
        leaf = await own.open(words);
      } else leaf = await transcript.tell(before, words);
      if (leaf === undefined) return undefined;
      const seen = own.textUpTo(leaf);
      before = await own.answer(leaf, { maxTokens });
      const { segment, text, tokens, generation } = before;
      return { segment, text, tokens, finishReason: generation.finishReason, seen };
    },
  };
}

function joined(earlier: Words, later: Words, seat: string): Words {
  if (typeof earlier === 'string' && typeof later === 'string') return earlier + later;
  if (typeof earlier !== 'string' && typeof later !== 'string') return [...earlier, ...later];
  throw new Error(`the seat ${seat} was told text and messages; tell it one of both`);
}

function asText(words: Words): string {
  return typeof words === 'string' ? words : words.map(({ content }) => content).join('\n');
}
