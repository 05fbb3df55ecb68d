import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { explain } from '../../../episode/explain.ts';
import type { Message } from '../../../episode/task.ts';
import type { Environment, EnvironmentFactory } from '../../contracts.ts';
import { BridgeProcess } from './process.ts';

export interface GemBridgeOptions {
  /** Name of the environment in GEM, as in game:GuessTheNumber-v0-easy. */
  readonly id: string;
  /** Given to `gem.make`. */
  readonly kwargs?: Readonly<Record<string, unknown>> | undefined;
  /** A Python that has the package gem-llm; python3 when not given. */
  readonly python?: string | undefined;
  /** Processes that the episodes are spread over; 2 when not given. */
  readonly processes?: number | undefined;
  /** Deadline in ms for a process to be ready and the environment to be made; 60 000 when not given. */
  readonly startTimeoutMs?: number | undefined;
  /** The bridge itself: a program and its arguments, instead of Python and the script that comes with this package. */
  readonly bridge?: readonly [string, ...string[]] | undefined;
}

/** Beside src and dist alike. */
const SCRIPT = fileURLToPath(new URL('../../../../python/gem_bridge.py', import.meta.url));

const seen = z.object({ observation: z.string(), prefix: z.string(), suffix: z.string() });
const stepped = seen.extend({ reward: z.number(), terminated: z.boolean(), truncated: z.boolean() });

/**
 * Environments of the Python package GEM itself, in processes of their own. The same seed gives the same episode, however
 * many episodes share a process. One that dies, or must be ended because an environment hangs, fails the episodes it had;
 * the next one starts another.
 */
export function gemEnvironment(options: GemBridgeOptions): EnvironmentFactory {
  const { id, kwargs = {}, python = 'python3', processes = 2, startTimeoutMs = 60_000 } = options;
  const [command, ...args] = options.bridge ?? [python, SCRIPT];
  const slots = Array.from({ length: processes }, () => new Slot(command, args));
  let made = 0;
  return async () => {
    const slot = slots.reduce((least, one) => (one.sessions < least.sessions ? one : least));
    const session = `${made++}`;
    slot.sessions += 1;
    try {
      const signal = AbortSignal.timeout(startTimeoutMs);
      const bridge = await slot.ready(signal);
      await bridge.ask({ op: 'make', session, env: id, kwargs }, signal);
      return environmentOf(bridge, session, () => {
        slot.sessions -= 1;
      });
    } catch (error) {
      slot.sessions -= 1;
      throw error;
    }
  };
}

/** One process at a time, started when it is needed and again when it is gone. */
class Slot {
  readonly #command: string;
  readonly #args: readonly string[];
  #bridge: BridgeProcess | undefined;
  sessions = 0;

  constructor(command: string, args: readonly string[]) {
    this.#command = command;
    this.#args = args;
  }

  async ready(signal: AbortSignal): Promise<BridgeProcess> {
    if (!this.#bridge?.isAlive) {
      this.#bridge = new BridgeProcess(this.#command, this.#args);
      // Says what is missing (a Python without GEM) in one sentence, before any environment is made.
      await this.#bridge.ask({ op: 'hello' }, signal).catch((error: Error) => {
        throw new Error(`${error.message}; the bridge needs a Python with the package gem-llm`, { cause: error });
      });
    }
    return this.#bridge;
  }
}

function environmentOf(bridge: BridgeProcess, session: string, onClose: () => void): Environment {
  const ask = async <T extends z.ZodType>(schema: T, request: object, signal: AbortSignal): Promise<z.output<T>> => {
    const given = await bridge.ask({ session, ...request }, signal);
    const parsed = schema.safeParse(given);
    if (parsed.success) return parsed.data;
    throw new Error(`the bridge answered in another shape: ${explain(parsed.error, given)}`);
  };
  let isOpen = true;
  return {
    async reset(_task, { seed, signal }) {
      const given = await ask(seen, { op: 'reset', seed }, signal);
      return { observation: told(given), suffix: given.suffix };
    },
    async step({ actionText, signal }) {
      const given = await ask(stepped, { op: 'step', action: actionText }, signal);
      const done = given.terminated || given.truncated;
      return { reward: given.reward, done, feedback: told(given), suffix: given.suffix };
    },
    async close() {
      if (!isOpen) return;
      isOpen = false;
      onClose();
      if (bridge.isAlive) await bridge.ask({ op: 'close', session });
    },
  };
}

/** As GEM's own wrapper joins them: the observation ends its line, the prefix stands before it and the suffix behind. */
function told({ observation, prefix, suffix }: z.output<typeof seen>): readonly Message[] {
  const line = observation === '' || observation.endsWith('\n') ? observation : `${observation}\n`;
  return [{ role: 'user', content: prefix + line + suffix }];
}
