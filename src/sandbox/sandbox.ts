import type { Execution, Interpreter, Language, Program, Sandbox } from './contracts.ts';
import { findInstallation, type Installation, SandboxError } from './installation.ts';
import { SandboxedInterpreter } from './interpreter.ts';
import { type SandboxOptions, type SandboxSettings, sandboxSettings } from './settings.ts';

/**
 * A sandbox for programs that nobody has read. Interpreters are found and started with the first program; every
 * program gets one of its own, started ahead where `warm` says so, and never used by another.
 * @throws SandboxError for settings that cannot be, and from the first call where isolation cannot be had
 */
export function openSandbox(options: SandboxOptions = {}): Sandbox {
  const parsed = sandboxSettings.safeParse(options);
  if (parsed.success) return new InterpreterPool(parsed.data);
  const issues = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.')}${path.length > 0 ? ': ' : ''}${message}`,
  );
  throw new SandboxError(`settings of the sandbox: ${issues.join('; ')}`);
}

const shared = new Map<string, Sandbox>();

/** The sandbox of these settings, the same for everyone in this process; it ends with the process. */
export function sharedSandbox(settings: SandboxSettings): Sandbox {
  const key = JSON.stringify(settings, Object.keys(settings).sort());
  const known = shared.get(key) ?? new InterpreterPool(settings);
  shared.set(key, known);
  return known;
}

class InterpreterPool implements Sandbox {
  readonly #settings: SandboxSettings;
  readonly #installations = new Map<Language, Promise<Installation>>();
  /** Started and waiting, oldest first. */
  readonly #ready = new Map<Language, Promise<Interpreter>[]>();
  readonly #open = new Set<Interpreter>();
  readonly #queue: (() => void)[] = [];
  #lent = 0;
  #closed = false;

  constructor(settings: SandboxSettings) {
    this.#settings = settings;
    if (settings.isolation === 'none') warnOnce();
  }

  run({ language, ...program }: Program, signal?: AbortSignal): Promise<Execution> {
    return this.use(language, interpreter => interpreter.run(program), signal);
  }

  async use<T>(language: Language, body: (interpreter: Interpreter) => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#turn(signal);
    let interpreter: Interpreter | undefined;
    const stop = () => void interpreter?.close();
    try {
      interpreter = await this.#take(language);
      signal?.throwIfAborted();
      signal?.addEventListener('abort', stop, { once: true });
      const result = await body(interpreter);
      signal?.throwIfAborted();
      return result;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', stop);
      await interpreter?.close();
      const next = this.#queue.shift();
      if (next === undefined) this.#lent -= 1;
      else next(); // has the place
    }
  }

  async start(language: Language): Promise<Interpreter> {
    if (this.#closed) throw new SandboxError('the sandbox is closed');
    let installation = this.#installations.get(language);
    if (installation === undefined) {
      installation = findInstallation(language, this.#settings);
      this.#installations.set(language, installation);
    }
    const interpreter = await SandboxedInterpreter.start(language, await installation, this.#settings);
    this.#open.add(interpreter);
    const close = interpreter.close.bind(interpreter);
    interpreter.close = () => {
      this.#open.delete(interpreter);
      return close();
    };
    if (this.#closed) await interpreter.close();
    return interpreter;
  }

  async warm(language: Language, count: number): Promise<void> {
    await Promise.all(this.#refill(language, count));
  }

  async close(): Promise<void> {
    this.#closed = true;
    const waiting = [...this.#ready.values()].flat();
    this.#ready.clear();
    await Promise.allSettled(waiting);
    await Promise.all([...this.#open].map(interpreter => interpreter.close()));
  }

  async #take(language: Language): Promise<Interpreter> {
    const ready = this.#ready.get(language) ?? [];
    for (let next = ready.shift(); next !== undefined; next = ready.shift()) {
      const interpreter = await next;
      this.#refill(language, this.#settings.warm);
      if (interpreter.alive) return interpreter;
      await interpreter.close();
    }
    const interpreter = await this.start(language);
    this.#refill(language, this.#settings.warm);
    return interpreter;
  }

  #refill(language: Language, count: number): Promise<Interpreter>[] {
    const ready = this.#ready.get(language) ?? [];
    this.#ready.set(language, ready);
    while (!this.#closed && ready.length < count) {
      const next = this.start(language);
      next.catch(() => undefined); // told to whoever takes it
      ready.push(next);
    }
    return ready;
  }

  /** Waits while as many are lent as may be. */
  async #turn(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#lent < this.#settings.concurrency) {
      this.#lent += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const wake = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(wake), 1);
        reject(signal!.reason);
      };
      signal?.addEventListener('abort', leave, { once: true });
      this.#queue.push(wake);
    });
  }
}

let warned = false;
function warnOnce(): void {
  if (warned) return;
  warned = true;
  process.emitWarning(
    'isolation none: programs run with the rights of this user; they can read and write its files and use the network. Only their time, their output and, with prlimit, their memory are held',
    'SandboxWarning',
  );
}
