import type { Environment, StepResult } from '../../envs/contracts.ts';
import type { Tool } from '../../envs/tools/contracts.ts';
import type { Message } from '../../episode/task.ts';
import { toolDialect } from '../../text/tool-calls/choose.ts';
import type { ToolDialect } from '../../text/tool-calls/dialect.ts';
import { toolSchema } from '../../text/tool-calls/schema.ts';
import type { Answer, Session } from '../session.ts';
import { type Called, makeCalls } from './calls.ts';
import { type Tag, taggedCall, tagInstructions, tagOf } from './tags.ts';

/** Tools beside an environment, as GEM's tool wrapper has them: an answer with a call does not reach the environment. */
export interface ToolUseOptions {
  readonly tools: readonly Tool[];
  /**
   * How calls are written. `tags`: `<python>…</python>` for a tool named python with one argument that is text, and a
   * fenced block of that language; the first block of an answer is the call. Else the name of a dialect
   * (`TOOL_DIALECTS`), all calls of an answer being made. `tags` when not given.
   */
  readonly calls?: string | undefined;
  /** Earned by an answer that calls, and beside it where no call failed; 0 when not given. */
  readonly reward?: number | undefined;
  readonly successReward?: number | undefined;
  /** Answers with calls; later ones go to the environment as they are. 10 when not given. */
  readonly maxUses?: number | undefined;
  /** Calls of one answer that are made, 16, and characters of a result, 8192, when not given. */
  readonly maxCalls?: number | undefined;
  readonly maxResultLength?: number | undefined;
  /** How the tools are explained behind the first observation; by their descriptions when not given. */
  readonly instructions?: string | undefined;
  /** Who says a result where the environment speaks messages; `user` when not given, which every chat template has. */
  readonly role?: 'user' | 'tool' | undefined;
  /** What the policy is told of a call; its name and result when not given. */
  readonly tell?: ((call: Called) => string) | undefined;
}

const LAST = 'That was the last call of a tool; answer without one now.';

/** Reads calls as the options say. @throws Error for two tools of one name, an unknown dialect, a tool without a tag */
export function toolUser(options: ToolUseOptions) {
  const { maxUses = 10 } = options;
  if (!(maxUses >= 1)) throw new RangeError(`tools: at most ${maxUses} uses; expected 1 or more`);
  const tools = new Map(options.tools.map(tool => [tool.name, tool]));
  if (tools.size < options.tools.length) throw new Error('two tools have one name; names must differ');
  const reader = options.calls === undefined || options.calls === 'tags' ? undefined : toolDialect(options.calls);
  const tags = reader ? [] : options.tools.map(tagOf);
  const instructions = options.instructions ?? explained(options.tools, tags, reader);
  return (session: Session, environment: Environment) =>
    new ToolUse(session, environment, { ...options, maxUses, instructions }, tools, tags, reader);
}

/** The tools of one episode. */
class ToolUse {
  /** Explains the tools behind the first observation. */
  readonly environment: Environment;
  readonly #session: Session;
  readonly #options: ToolUseOptions & { readonly maxUses: number };
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #tags: readonly Tag[];
  readonly #dialect: ToolDialect | undefined;
  #isText = false;
  #uses = 0;

  constructor(
    session: Session,
    environment: Environment,
    options: ToolUseOptions & { readonly maxUses: number; readonly instructions: string },
    tools: ReadonlyMap<string, Tool>,
    tags: readonly Tag[],
    dialect: ToolDialect | undefined,
  ) {
    this.#session = session;
    this.#options = options;
    this.#tools = tools;
    this.#tags = tags;
    this.#dialect = dialect;
    session.addMetrics({ tool_calls: 0, tool_failures: 0 });
    this.environment = {
      reset: async (task, context) => {
        const given = await environment.reset(task, context);
        this.#isText = typeof given.observation === 'string';
        const { observation, suffix = '' } = given;
        const apart = suffix === '' || suffix.startsWith('\n') ? '' : '\n';
        return { ...given, observation: behind(observation, `\n${options.instructions}${apart}`, suffix) };
      },
      step: action => environment.step(action),
    };
  }

  /** What the calls of an answer give; undefined for one without, or behind the last use, which is the environment's. */
  async use(answer: Answer, turn: number): Promise<StepResult | undefined> {
    const { maxUses, reward = 0, successReward = 0, maxCalls = 16, maxResultLength = 8192 } = this.#options;
    if (this.#uses >= maxUses || answer.generation.finishReason === 'length') return undefined;
    const tagged = this.#dialect ? undefined : taggedCall(answer.text, this.#tags);
    const written = tagged ? [tagged.call] : (this.#dialect?.parse(answer.content).calls ?? []);
    if (written.length === 0) return undefined;
    this.#uses += 1;
    const made = await makeCalls(written, turn, this.#tools, this.#session, { maxCalls, maxLength: maxResultLength });
    const failures = made.filter(({ failed }) => failed).length;
    for (const { metrics } of made) this.#session.addMetrics(metrics);
    return {
      reward: made.reduce((sum, call) => sum + call.reward, reward + (failures === 0 ? successReward : 0)),
      feedback: this.#told(made),
      done: made.some(({ done }) => done),
      toolFailed: failures > 0,
      metrics: { tool_calls: made.length, tool_failures: failures },
      ...(tagged ? { parsedAction: answer.text.slice(0, tagged.end) } : {}),
    };
  }

  #told(made: readonly Called[]): string | readonly Message[] {
    const { tell = ({ name, content }: Called) => `Result of ${name}: ${content}\n`, role = 'user' } = this.#options;
    const last = this.#uses === this.#options.maxUses ? `\n${LAST}\n` : '';
    const content = made.map(tell).join('') + last;
    return this.#isText ? content : [{ role, content }];
  }
}

function explained(tools: readonly Tool[], tags: readonly Tag[], dialect: ToolDialect | undefined): string {
  return dialect ? dialect.instructions(tools.map(toolSchema)) : tagInstructions(tags);
}

/** Text put behind an observation, before its suffix. */
function behind(observation: string | readonly Message[], text: string, suffix: string): string | readonly Message[] {
  if (typeof observation === 'string') {
    const end = observation.length - (observation.endsWith(suffix) ? suffix.length : 0);
    return observation.slice(0, end) + text + observation.slice(end);
  }
  const last = observation.at(-1);
  if (last === undefined) return [{ role: 'user', content: text }];
  return [...observation.slice(0, -1), { ...last, content: behind(last.content, text, suffix) as string }];
}
