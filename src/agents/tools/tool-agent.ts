import type { Tool } from '../../envs/tools/contracts.ts';
import type { Outcome } from '../../episode/episode.ts';
import type { Message, Task } from '../../episode/task.ts';
import type { RewardFunction } from '../../rewards/contracts.ts';
import { toolDialect } from '../../text/tool-calls/choose.ts';
import type { ToolDialect, ToolSchema } from '../../text/tool-calls/dialect.ts';
import { react } from '../../text/tool-calls/react.ts';
import { toolSchema } from '../../text/tool-calls/schema.ts';
import { checkReward } from '../checks.ts';
import type { Executor } from '../contracts.ts';
import { checkFold, FoldingTranscript, type HistoryOptions, transcriptOf } from '../folding.ts';
import { recordEpisode, type Session } from '../session.ts';
import { type Called, makeCalls } from './calls.ts';
import { SUMMARIZE, summarize } from './summarize.ts';

export interface ToolAgentOptions extends HistoryOptions {
  readonly tools: readonly Tool[];
  /** Scores the finished episode: `text` is the last answer without its calls, `resources` what the tools hold. */
  readonly reward: RewardFunction;
  /** Put before the task's messages. */
  readonly system?: string | undefined;
  /** What the policy is given; the task's own prompt by default, text as a user's message. */
  readonly prompt?: ((task: Task) => string | readonly Message[]) | undefined;
  /** Name of a dialect (`TOOL_DIALECTS`); that of the checkpoint's chat template, else ReAct, when not given. */
  readonly dialect?: string | undefined;
  /** Calls of one answer that are made; 16 when not given. */
  readonly maxCalls?: number | undefined;
  /** Characters of one result; 8192 when not given. The cut is visible. */
  readonly maxResultLength?: number | undefined;
  /** Answers per episode, and tokens per answer; the run's limits when not given. */
  readonly maxTurns?: number | undefined;
  readonly maxNewTokens?: number | undefined;
}

/**
 * The policy calls tools until it answers without a call, a tool ends the episode, or turns or tokens are used up. An
 * answer cut by its length ends it too. Every episode that did not fail is scored once, at its end; the score is added
 * to the reward of the last step.
 * @throws Error for two tools of one name, an unknown dialect, or a fold that never happens
 */
export function toolAgent(options: ToolAgentOptions): Executor {
  if (options.fold) checkFold(options.fold);
  const offered = options.fold?.tool ? [...options.tools, summarize] : options.tools;
  const tools = new Map<string, Tool>();
  for (const tool of offered) {
    if (tools.has(tool.name)) throw new Error(`two tools are named ${JSON.stringify(tool.name)}; names must differ`);
    tools.set(tool.name, tool);
  }
  const schemas = offered.map(toolSchema);
  const wanted = options.dialect === undefined ? undefined : toolDialect(options.dialect);
  const pools = new Set(options.tools.flatMap(({ pool }) => pool ?? []));
  return {
    name: 'tool',
    run: (task, context) =>
      recordEpisode(task, context, async session => {
        const dialect = wanted ?? context.renderer.toolDialect ?? react;
        const calls: Called[] = [];
        const { outcome, text } = await play(session, { options, tools, schemas, dialect, calls });
        await score(session, options.reward, { text, calls, pools });
        return outcome;
      }),
    async close() {
      await Promise.all([...pools].map(pool => pool.close()));
    },
  };
}

interface Play {
  readonly options: ToolAgentOptions;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly schemas: readonly ToolSchema[];
  readonly dialect: ToolDialect;
  /** Every call so far; added to. */
  readonly calls: Called[];
}

async function play(session: Session, { options, tools, schemas, dialect, calls }: Play) {
  const { context, recorder } = session;
  const maxTurns = options.maxTurns ?? context.limits.maxTurns;
  const maxTokens = options.maxNewTokens ?? context.limits.maxNewTokens;
  const limits = {
    maxCalls: options.maxCalls ?? 16,
    maxLength: options.maxResultLength ?? 8192,
    alone: options.fold?.tool ? SUMMARIZE : undefined,
  };
  const { messages, shown } = await opening(session, options, schemas, dialect);
  const transcript = transcriptOf(session, messages, options, { tools: shown, dialect });
  let leaf = await session.open(messages, session.task.images, shown);
  session.addMetrics({ turns: 0, tool_calls: 0, tool_failures: 0 });
  const stopStrings = [...context.policy.params.stopStrings, ...dialect.stopStrings];
  for (let turn = 0; ; turn++) {
    const answer = await session.answer(leaf, { maxTokens, stopStrings });
    const { finishReason } = answer.generation;
    const { content, calls: written } = dialect.parse(answer.content);
    const cut = finishReason === 'length';
    const made = cut ? [] : await makeCalls(written, turn, tools, session, limits);
    calls.push(...made);
    const failures = made.filter(({ failed }) => failed).length;
    const metrics = { tool_calls: made.length, tool_failures: failures };
    recorder.step({
      segment: answer.segment,
      reward: made.reduce((sum, { reward }) => sum + reward, 0),
      finishReason,
      isVoid: written.length === 0 && content === '',
      toolFailed: failures > 0,
      metrics,
    });
    session.addMetrics({ ...metrics, turns: 1 });
    for (const { metrics: measured } of made) session.addMetrics(measured);
    const end = (outcome: Outcome) => ({ outcome, text: content });
    if (cut) return end({ kind: 'truncated', reason: 'length' });
    if (made.length === 0 || made.some(({ done }) => done)) return end({ kind: 'done' });
    if (turn + 1 >= maxTurns) return end({ kind: 'truncated', reason: 'turns' });
    const results = made.map(({ name, content }, i) => dialect.result({ id: callId(turn, i), name, content }));
    const [only] = made;
    const next =
      transcript instanceof FoldingTranscript && only?.name === limits.alone && !only?.failed
        ? transcript.fold(String(only?.arguments.summary))
        : await transcript.tell(answer, results);
    if (next === undefined) return end({ kind: 'truncated', reason: 'tokens' });
    leaf = next;
  }
}

/** The first messages, and the tools that the chat template shows: where it shows none, a system message does. */
async function opening(
  session: Session,
  options: ToolAgentOptions,
  schemas: readonly ToolSchema[],
  dialect: ToolDialect,
): Promise<{ readonly messages: readonly Message[]; readonly shown: readonly ToolSchema[] | undefined }> {
  const { task, context } = session;
  const given = await session.call('environment', 'prompt', () => options.prompt?.(task) ?? task.prompt);
  const asked: readonly Message[] = typeof given === 'string' ? [{ role: 'user', content: given }] : given;
  const native = context.renderer.toolDialect?.name === dialect.name;
  const [first, ...rest] = asked;
  const system = [
    options.system,
    ...(first?.role === 'system' ? [first.content] : []),
    ...(native || schemas.length === 0 ? [] : [dialect.instructions(schemas)]),
  ].filter(text => text !== undefined && text !== '');
  const others = first?.role === 'system' ? rest : asked;
  const messages = system.length === 0 ? others : [{ role: 'system', content: system.join('\n\n') }, ...others];
  return { messages, shown: native ? schemas : undefined };
}

/** Nine letters and digits, as Mistral's template demands. */
function callId(turn: number, index: number): string {
  return `c${String(turn).padStart(5, '0')}${String(index).padStart(3, '0')}`;
}

async function score(
  session: Session,
  reward: RewardFunction,
  end: {
    readonly text: string;
    readonly calls: readonly Called[];
    readonly pools: Iterable<NonNullable<Tool['pool']>>;
  },
): Promise<void> {
  const { task, context, recorder, signal } = session;
  const { id, group, sample } = context;
  const prompt = session.textUpTo(0);
  const held = [...end.pools].flatMap(pool => {
    const resource = pool.held(id);
    return resource === undefined ? [] : [[pool.name, resource] as const];
  });
  const input = {
    task,
    prompt,
    text: end.text,
    query: prompt + end.text,
    label: task.label,
    episode: { id, group, sample, segments: recorder.segments, steps: recorder.steps },
    calls: end.calls,
    resources: Object.fromEntries(held),
    signal,
  };
  const places = recorder.places();
  const scored = await session.call('reward', 'reward', async () => checkReward(await reward([input]), places));
  recorder.addReward(scored.reward, scored);
  session.score = scored.score;
  session.addMetrics(scored.metrics);
}
