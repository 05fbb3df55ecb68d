import { createInterface } from 'node:readline';
import { z } from 'zod';
import { checkReset, checkStepResult } from '../agents/checks.ts';
import { agentOptions } from '../agents/options.ts';
import { compose, pick } from '../config/compose.ts';
import { ConfigError } from '../config/error.ts';
import type { Environment, StepResult } from '../envs/contracts.ts';
import { listEnvironments } from '../envs/registry.ts';
import { boundary } from '../episode/failure.ts';
import type { Message, Task } from '../episode/task.ts';
import { options } from '../options/option.ts';
import { agentChoiceOptions } from '../rollout/options.ts';
import { trainOptions } from '../training/options.ts';
import { type CommandContext, defineCommand } from './command.ts';
import { type ChosenEnvironment, openChosen } from './environments.ts';
import { table } from './table.ts';

const playOptions = compose(
  options({
    'agent.env': {
      schema: z.string().min(1).optional(),
      help: 'Environment by name, as in guess-number or guess-number@1, or a file of your own (my-env/environment.ts); without it the known ones are listed',
      position: 0,
    },
  }),
  pick(agentChoiceOptions, 'agent.env_parameters'),
  options({
    'play.player': {
      schema: z.enum(['human', 'random', 'oracle']).default('human'),
      help: 'Who plays: you, or a scripted player of the environment, to be watched',
    },
    'play.prompt': { schema: z.string().min(1).optional(), help: 'Task to play, where the environment needs one' },
    'play.label': { schema: z.string().optional(), help: 'Label of play.prompt, what a right answer is compared with' },
  }),
  pick(trainOptions, 'train.seed'),
  pick(agentOptions, 'agent.call_timeout_ms'),
);

type PlayContext = Pick<
  CommandContext<typeof playOptions>,
  'values' | 'cwd' | 'stdin' | 'stdout' | 'stderr' | 'interrupt'
>;

export const command = defineCommand({
  name: 'play',
  options: playOptions,
  details: `Each line that you write is one answer; a line that ends in a backslash goes on in the next one. Ctrl-D or Ctrl-C ends
the game, and answers can be piped in. The environment gets train.seed as it is: the same seed is the same game.`,
  run: play,
});

/** The command: one episode, played by whoever writes to the standard input. */
export async function play(context: PlayContext): Promise<undefined> {
  const { values, cwd, stdout } = context;
  const name = values['agent.env'];
  if (name === undefined) {
    const rows = listEnvironments().map(one => [`${one.name}@${one.version}`, one.help]);
    stdout.write(`${table([['environment', 'what it is'], ...rows])}\n\ntokenloop play <environment> plays one\n`);
    return;
  }
  const chosen = await openChosen({ name, parameters: values['agent.env_parameters'] }, cwd);
  const task = taskOf(chosen, values);
  const seed = values['train.seed'];
  const answers = answersOf(chosen, context, task, seed);
  const { definition } = chosen;
  stdout.write(`${name}, seed ${seed}${definition ? `: ${definition.help}` : ''}\n\n`);
  try {
    await episode({ chosen, task, seed, answers: answers.next }, context);
  } finally {
    answers.close();
  }
}

interface Game {
  readonly chosen: ChosenEnvironment;
  readonly task: Task;
  readonly seed: number;
  /** Undefined when there are no more. */
  readonly answers: (seen: string | readonly Message[], turn: number) => PromiseLike<string | undefined>;
}

async function episode({ chosen, task, seed, answers }: Game, context: PlayContext): Promise<void> {
  const { values, stdout, interrupt } = context;
  const { signal } = interrupt;
  const call = <T>(what: string, run: () => T | PromiseLike<T>) =>
    boundary('environment', `environment.${what}`, run, { signal, timeoutMs: values['agent.call_timeout_ms'] });
  const environment: Environment = await call('make', () => chosen.make());
  let [score, reward, turn] = [0, 0, 0];
  const tell = (how: string) => stdout.write(`${how}: score ${round(score)}, reward ${round(reward)}, turns ${turn}\n`);
  try {
    const start = await call('reset', async () => checkReset(await environment.reset(task, { seed, signal })));
    let seen = start.observation;
    let text = show(seen, start.images);
    stdout.write(`${text}\n`);
    for (;;) {
      stdout.write('\n> ');
      const actionText = await answers(seen, turn);
      if (actionText === undefined) {
        stdout.write('\n');
        tell(signal.aborted ? 'interrupted' : 'no more answers');
        return;
      }
      const result = await call('step', async () =>
        checkStepResult(await environment.step(action(actionText, { task, turn, signal, observationText: text }))),
      );
      turn += 1;
      reward += result.reward;
      score = result.score ?? reward;
      stdout.write(`${describe(result)}\n`);
      if (result.done) {
        tell('\nover');
        return;
      }
      seen = result.feedback!;
      text += `${actionText}${show(seen)}`;
    }
  } finally {
    await environment.close?.();
  }
}

function action(
  actionText: string,
  given: { readonly task: Task; readonly turn: number; readonly signal: AbortSignal; readonly observationText: string },
) {
  const actionTokens = new Int32Array(new TextEncoder().encode(actionText));
  return { actionText, actionTokens, label: given.task.label, finishReason: 'stop' as const, ...given };
}

/** What a step gave: `[reward 0.5]`, the score where the environment has one of its own, metrics that are not 0, and the feedback. */
function describe({ reward, score, metrics, feedback, images }: StepResult): string {
  const more = Object.entries(metrics ?? {}).filter(([, value]) => value !== 0);
  const numbers = [['reward', reward] as const, ...(score === undefined ? [] : [['score', score] as const]), ...more];
  const told = feedback === undefined ? [] : [show(feedback, images)];
  return [`[${numbers.map(([name, value]) => `${name} ${round(value)}`).join(', ')}]`, ...told].join('\n');
}

/** Text as it is, messages with their role unless that is the user, images by their kind and size. */
function show(seen: string | readonly Message[], images: StepResult['images'] = []): string {
  const said =
    typeof seen === 'string'
      ? [seen]
      : seen.map(({ role, content }) => (role === 'user' ? content : `${role}: ${content}`));
  return [...said, ...images.map(one => `(an image, ${one.mediaType}, ${one.data.length} bytes)`)].join('\n');
}

function taskOf({ tasks }: ChosenEnvironment, values: PlayContext['values']): Task {
  const { 'play.prompt': prompt, 'play.label': label = '', 'train.seed': seed } = values;
  if (prompt === undefined) return tasks[seed % tasks.length]!;
  return { id: 'play', prompt, label, metadata: {} };
}

/** Answers of a scripted player, or of the lines of the standard input. */
function answersOf(
  chosen: ChosenEnvironment,
  { values, stdin, stdout, interrupt }: PlayContext,
  task: Task,
  seed: number,
) {
  const who = values['play.player'];
  if (who === 'human') return linesOf(stdin, interrupt.signal, line => stdin.isTTY || stdout.write(`${line}\n`));
  const player = chosen.players?.[who];
  if (player === undefined) {
    throw new ConfigError([`${chosen.name} has no ${who} player; play it yourself, with play.player human`]);
  }
  const answer = player({ task, seed });
  const next: Game['answers'] = async (seen, turn) => {
    interrupt.signal.throwIfAborted();
    const said = await answer(seen, turn);
    stdout.write(`${said}\n`);
    return said;
  };
  return { next, close: () => undefined };
}

/** @param echo shows what was read, where the terminal does not */
function linesOf(stdin: PlayContext['stdin'], signal: AbortSignal, echo: (line: string) => unknown) {
  const reader = createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY, signal });
  const lines = reader[Symbol.asyncIterator]();
  const next: Game['answers'] = async () => {
    const parts: string[] = [];
    for (;;) {
      const { done, value } = await lines.next();
      if (done) return parts.length > 0 ? parts.join('\n') : undefined;
      echo(value);
      if (!value.endsWith('\\')) return [...parts, value].join('\n');
      parts.push(value.slice(0, -1));
    }
  };
  return { next, close: () => reader.close() };
}

function round(value: number): string {
  return String(Number(value.toFixed(3)));
}
