import type { Executor } from '../agents/contracts.ts';
import { multiTurn } from '../agents/multi-turn.ts';
import { ConfigError } from '../config/error.ts';
import type { evaluationOptions } from '../config/eval.ts';
import type { Task } from '../episode/task.ts';
import { evaluatePolicy } from '../train.ts';
import type { Evaluation } from '../training/evaluate.ts';
import { type Played, type PlaySummary, playedBy, playTasks, summarise } from '../training/players.ts';
import { agentRun } from './agent.ts';
import type { CommandContext } from './command.ts';
import { loadEvaluationTasks } from './datasets.ts';
import { type Display, displayOf } from './display.ts';
import { type ChosenEnvironment, matchEnvironments, openChosen } from './environments.ts';
import { countingEpisodes } from './episode-progress.ts';
import type { Evaluated } from './eval-policy.ts';
import { writeResult } from './eval-result.ts';
import { resultLine } from './summary.ts';
import { table } from './table.ts';
import { tracedAgent } from './trackers.ts';

type EvalContext = CommandContext<typeof evaluationOptions>;
type PlayerName = NonNullable<EvalContext['values']['eval.player']>[number];
type Open = () => Promise<Pick<Evaluated, 'sampler' | 'renderer' | 'close'> & { readonly name?: string }>;

/** Answers after which a scripted player gives up an environment that states no limit. */
const MAX_TURNS = 10_000;

/** `tokenloop eval --env`: who plays, in which environments, and how well. `open` makes the engine of the model. */
export async function evaluateEnvironments(context: EvalContext, open: Open): Promise<undefined> {
  const { values, stdout } = context;
  const began = performance.now();
  const players = playersOf(values);
  const environments = await openAll(context);
  refuse(values, players);
  const tasks = new Map<string, Task[]>();
  for (const one of environments) tasks.set(one.name, await tasksOf(one, context));
  const totalSteps = [...tasks.values()].flat().length;
  const fields = [
    { metric: 'reward', label: 'reward' },
    { metric: 'failed', label: 'failed', format: 'percent' as const },
  ];
  const display = displayOf(values, context, { totalSteps, unit: 'episode', fields });
  const job: Job = { environments, tasks, context, display };
  const results: { player: PlayerName; name: string; played: Map<string, Played[]> }[] = [];
  for (const player of players) {
    const { name, played } = player === 'model' ? await playModel(job, open) : await playScripted(job, player);
    results.push({ player, name, played });
  }

  const rows = environments.flatMap(one =>
    results.map(({ name, played }) => summarise(one.name, name, played.get(one.name)!)),
  );
  if (values.json) for (const row of rows) stdout.write(`${JSON.stringify(row)}\n`);
  for (const { name, played } of results) await writeResult(evaluationOf(played), name, context);
  const solved = results.map(({ player, name }) => {
    const of = rows.filter(row => row.player === name);
    return { label: `solved by ${player}`, values: [of.reduce((sum, row) => sum + row.solved, 0) / of.length] };
  });
  const seconds = (performance.now() - began) / 1000;
  display.report(`${playersTable(rows)}\n\n${resultLine(solved, { seconds, seed: values['train.seed'] })}`);
}

interface Job {
  readonly environments: readonly ChosenEnvironment[];
  /** By environment. */
  readonly tasks: ReadonlyMap<string, readonly Task[]>;
  readonly context: EvalContext;
  readonly display: Display;
}

/** Who played, and their episodes by environment. */
interface Result {
  readonly name: string;
  readonly played: Map<string, Played[]>;
}

/** A model plays all environments in one evaluation, so that its batches are full. */
async function playModel({ environments, tasks, context, display }: Job, open: Open): Promise<Result> {
  const { values, interrupt } = context;
  const executors = new Map(
    environments.map(({ name, make, maxTurns }) => [
      name,
      multiTurn(make, { maxTurns: maxTurns ?? values['agent.max_turns'] }),
    ]),
  );
  const anyOf: Executor = { name: 'multi-turn', run: (task, run) => executors.get(task.source!)!.run(task, run) };
  const agent = await tracedAgent(anyOf, values);
  const policy = await open();
  try {
    const { episodes } = await evaluatePolicy({
      ...agentRun({ ...values, 'rollout.temperature': values['eval.temperature'] }),
      policy,
      tasks: [...tasks.values()].flat(),
      agent: values.json ? agent : countingEpisodes(agent, display.tracker),
      temperature: values['eval.temperature'],
      maxFailureRate: values['rollout.max_failure_rate'],
      signal: interrupt.signal,
      log: display.warn,
    });
    const all = episodes.map(episode => playedBy(episode, values['eval.pass_score']));
    const played = new Map(environments.map(({ name }) => [name, all.filter(({ task }) => task.source === name)]));
    return { name: policy.name ?? 'model', played };
  } finally {
    await policy.close();
    if (!values.json) await display.tracker.close();
  }
}

async function playScripted(
  { environments, tasks, context, display }: Job,
  kind: 'random' | 'oracle',
): Promise<Result> {
  const { values, interrupt } = context;
  const played = new Map<string, Played[]>();
  for (const { name, make, maxTurns = MAX_TURNS, players } of environments) {
    const player = players?.[kind];
    if (player === undefined) throw new ConfigError([`${name} has no ${kind} player; leave it or the player out`]);
    const results = await playTasks(make, player, tasks.get(name)!, {
      seed: values['train.seed'],
      passScore: values['eval.pass_score'],
      callTimeoutMs: values['agent.call_timeout_ms'],
      signal: interrupt.signal,
      maxTurns,
    });
    checkFailures(name, results, values['rollout.max_failure_rate'], display);
    played.set(name, results);
  }
  return { name: kind, played };
}

function checkFailures(name: string, played: readonly Played[], maxRate: number, { warn }: Display): void {
  const messages = played.flatMap(({ failure }) => failure ?? []);
  if (messages.length === 0) return;
  const what = `${name}: ${messages.length} of ${played.length} episodes failed: ${messages[0]}`;
  if (messages.length > maxRate * played.length) throw new Error(`${what}; rollout.max_failure_rate is ${maxRate}`);
  warn(what);
}

async function openAll({ values, cwd }: EvalContext): Promise<ChosenEnvironment[]> {
  const patterns = [values['eval.env']!].flat().flatMap(one => one.split(','));
  const parameters = values['agent.env_parameters'];
  return Promise.all(matchEnvironments(patterns).map(name => openChosen({ name, parameters }, cwd)));
}

/** eval.episodes tasks of an environment: of eval.dataset where one is given, else its own, over and over. */
async function tasksOf({ name, tasks }: ChosenEnvironment, context: EvalContext): Promise<Task[]> {
  const { 'eval.dataset': dataset, 'eval.episodes': episodes, 'eval.split': split } = context.values;
  const given =
    dataset === undefined
      ? tasks
      : await loadEvaluationTasks(dataset, context.values, context, { limit: episodes, split });
  return Array.from({ length: episodes }, (_, n) => {
    return { ...given[n % given.length]!, id: `${name}:${n}`, source: name };
  });
}

function playersOf(values: EvalContext['values']): readonly PlayerName[] {
  const { 'eval.player': named, 'model.model_name_or_path': model, 'eval.endpoint': endpoint } = values;
  if (named !== undefined) return [...new Set(named)];
  return model === undefined && endpoint === undefined ? ['random', 'oracle'] : ['model'];
}

/** Options that would have no effect. */
function refuse(values: EvalContext['values'], players: readonly PlayerName[]): void {
  const others = (
    [
      'agent.env',
      'train.agent_func_path',
      'reward.remote_url',
      'agent.type',
      'env.mcp.servers',
      'run.dir',
      'eval.max_samples',
    ] as const
  ).filter(name => values[name] !== undefined);
  const faults = others.map(name => `${name} is not for eval.env; leave it out`);
  if (values['eval.n_samples_per_prompt'] !== 1 || values['eval.greedy_enable']) {
    faults.push('eval.env plays each seed once; eval.episodes says how many, and eval.temperature 0 is greedy');
  }
  if (values['eval.output'] !== undefined && players.length > 1) {
    faults.push(`eval.output holds the result of one player, and there are ${players.length}: name one as eval.player`);
  }
  if (faults.length > 0) throw new ConfigError(faults);
}

/** What eval.output keeps and eval.compare compares. */
function evaluationOf(
  played: ReadonlyMap<string, readonly Played[]>,
): Pick<Evaluation, 'metrics' | 'tasks' | 'version'> {
  const metrics: Record<string, number> = {};
  for (const [name, episodes] of played) {
    const { environment: _, player: __, solved, ...rest } = summarise(name, '', episodes);
    for (const [metric, value] of Object.entries({ pass1: solved, ...rest })) metrics[`eval/${name}/${metric}`] = value;
  }
  const tasks = [...played.values()].flat().map(({ task, solved, reward, failure }) => {
    const counts = { attempts: 1, solved: solved ? 1 : 0, failed: failure === undefined ? 0 : 1 };
    return { id: task.id, source: task.source!, ...counts, ...(failure === undefined && { reward }) };
  });
  return { metrics, tasks, version: 0 };
}

function playersTable(rows: readonly PlaySummary[]): string {
  const show = (value: number) => (Number.isNaN(value) ? '-' : value.toFixed(3));
  const heading = [
    'environment',
    'player',
    'episodes',
    'score',
    'reward',
    'solved',
    '95 % interval',
    'turns',
    'illegal',
    'failed',
  ];
  const cells = rows.map(row => [
    row.environment,
    row.player,
    row.episodes,
    show(row.score),
    show(row.reward),
    show(row.solved),
    `${show(row.solvedLow)} … ${show(row.solvedHigh)}`,
    row.turns.toFixed(1),
    row.illegal.toFixed(2),
    row.failed,
  ]);
  return table([heading, ...cells]);
}
