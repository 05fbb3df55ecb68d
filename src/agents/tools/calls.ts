import type { Tool, ToolContext, ToolResult } from '../../envs/tools/contracts.ts';
import { explain } from '../../episode/explain.ts';
import { boundary, EpisodeError, messageOf } from '../../episode/failure.ts';
import type { CallRecord } from '../../rewards/contracts.ts';
import type { MalformedCall, WrittenCall } from '../../text/tool-calls/dialect.ts';
import { checkToolResult } from '../checks.ts';
import type { Session } from '../session.ts';

export interface CallLimits {
  /** Calls of one answer that are made; the others are answered with an error. */
  readonly maxCalls: number;
  /** Characters of one result. */
  readonly maxLength: number;
  /** Name of a tool that is refused beside other calls. */
  readonly alone?: string | undefined;
}

export type Called = CallRecord & Required<Pick<ToolResult, 'done' | 'reward'>> & Pick<ToolResult, 'metrics'>;

/**
 * Makes the calls of one answer at the same time; results in the order of the calls. What the policy did wrong (a call
 * that cannot be read, an unknown tool, wrong arguments) and what a tool throws is told to the policy. An `EpisodeError`
 * from a tool, and a resource that cannot be had, fail the episode: they are not the policy's to mend.
 */
export function makeCalls(
  written: readonly (WrittenCall | MalformedCall)[],
  turn: number,
  tools: ReadonlyMap<string, Tool>,
  session: Session,
  limits: CallLimits,
): Promise<Called[]> {
  return Promise.all(
    written.map(async (call, i) => {
      const name = call.name ?? '';
      const given = call.kind === 'call' ? call.arguments : {};
      const tool = tools.get(name);
      const result = await settle(call, i);
      const { done = false, failed = false, reward = 0, metrics } = result;
      const content = shortened(result.content, tool?.maxLength ?? limits.maxLength);
      return { turn, name, arguments: given, content, failed, done, reward, ...(metrics ? { metrics } : {}) };
    }),
  );

  async function settle(call: WrittenCall | MalformedCall, index: number): Promise<ToolResult> {
    if (index >= limits.maxCalls) return refusal(`at most ${limits.maxCalls} calls are made for one answer`);
    if (call.kind === 'malformed') return refusal(call.error);
    if (call.name === limits.alone && written.length > 1) {
      return refusal(`${call.name} must be the only call of an answer`);
    }
    const tool = tools.get(call.name);
    if (tool === undefined) {
      return refusal(`there is no tool ${JSON.stringify(call.name)}; there are: ${[...tools.keys()].join(', ')}`);
    }
    const parsed = await tool.parameters.safeParseAsync(call.arguments);
    if (!parsed.success) return refusal(`arguments of ${tool.name}: ${explain(parsed.error, call.arguments)}`);
    return execute(tool, parsed.data, session);
  }
}

async function execute(tool: Tool, args: unknown, session: Session): Promise<ToolResult> {
  const { task, context, signal } = session;
  const resource = await resourceOf(tool, session);
  const over = new AbortController();
  const forward = () => over.abort(signal.reason);
  signal.addEventListener('abort', forward, { once: true });
  const toolContext: ToolContext = {
    task,
    episode: context.id,
    seed: context.environmentSeed,
    resource,
    signal: over.signal,
  };
  const timeoutMs = tool.timeoutMs ?? context.limits.callTimeoutMs;
  const what = `tool ${tool.name}`;
  let value: unknown;
  try {
    value = await boundary('tool', what, () => tool.execute(args as never, toolContext), { signal, timeoutMs });
  } catch (error) {
    if (signal.aborted || !(error instanceof EpisodeError)) throw error;
    if (error.failureClass === 'timeout') return refusal(`${tool.name} gave no result within ${timeoutMs} ms`);
    // `boundary` made it of what the tool threw; one that the tool threw itself has no such cause.
    if (error.cause === undefined || error.failureClass !== 'tool') throw error;
    return refusal(messageOf(error.cause));
  } finally {
    signal.removeEventListener('abort', forward);
    over.abort(new Error(`the call of ${tool.name} is over`));
  }
  return boundary('tool', what, () => checkToolResult(value));
}

async function resourceOf({ name, pool }: Tool, session: Session): Promise<unknown> {
  if (pool === undefined) return undefined;
  const { id, aside = wait => wait() } = session.context;
  const held = pool.held(id);
  if (held !== undefined) return held;
  session.onEnd(`giving back ${pool.name}`, () => pool.release(id));
  // Its own deadline is the episode's: a wait in the queue for a resource says nothing about the tool.
  return boundary(
    'tool',
    `tool ${name}: its resource ${pool.name}`,
    () => aside(() => pool.acquire(id, session.signal)),
    {
      signal: session.signal,
    },
  );
}

function refusal(reason: string): ToolResult {
  return { content: `Error: ${reason}`, failed: true };
}

/** The beginning and the end of a result that is too long, with what is missing said between them. */
export function shortened(content: string, maxLength: number): string {
  if (content.length <= maxLength) return content;
  const note = (left: number) => `\n[… ${left} characters left out …]\n`;
  const kept = Math.max(0, maxLength - note(content.length).length);
  const head = Math.ceil(kept / 2);
  const tail = kept - head;
  return `${content.slice(0, head)}${note(content.length - kept)}${tail > 0 ? content.slice(-tail) : ''}`;
}
