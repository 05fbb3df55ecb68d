import { randomBytes } from 'node:crypto';
import type { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as later } from 'node:timers/promises';
import { OWN_MIB } from './bubblewrap.ts';
import type { Ending, Evaluation, Execution, Interpreter, Language, Program } from './contracts.ts';
import { type Installation, SandboxError } from './installation.ts';
import { type Launched, launch } from './launch.ts';
import { Output } from './output.ts';
import type { SandboxSettings } from './settings.ts';
import { memoryOf } from './watch.ts';

/** What the driver inside answers; anything in it may be the program's own invention. */
interface Answer {
  readonly ready?: unknown;
  readonly ending?: unknown;
  readonly value?: unknown;
  readonly error?: unknown;
}

const START_MS = 30_000;
const WATCH_MS = 100;
const MIB = 2 ** 20;
/** A program that writes so many times what is kept is ended. */
const FLOOD = 256;
/** After the end of the first process, for what others may still hold open. */
const GRACE_MS = 500;
const SIGNAL = { abort: 128 + 6, cpu: 128 + 24 };

export class SandboxedInterpreter implements Interpreter {
  readonly language: Language;
  readonly #settings: SandboxSettings;
  readonly #launched: Launched;
  readonly #out: Output;
  readonly #err: Output;
  readonly #ended: Promise<void>;
  #alive = true;
  #exitCode: number | undefined;
  /** Why it was ended from outside. */
  #reason: Ending | undefined;
  readonly #decoder = new StringDecoder('utf8');
  #line = '';
  #answers: Answer[] = [];
  /** Called whenever something has come. */
  #notify: () => void = () => undefined;

  /** @throws SandboxError when the interpreter does not start */
  static async start(language: Language, installation: Installation, settings: SandboxSettings) {
    const started = new SandboxedInterpreter(language, await launch(language, installation, settings), settings);
    await started.#until(() => started.#answers.length > 0, START_MS);
    const [first] = started.#answers.splice(0);
    if (first?.ready === true) return started;
    await started.close();
    const said = started.#err.take().text.trim() || `it ended with exit code ${started.#exitCode}`;
    const advice = installation.bwrap === undefined ? '' : `; ${howToHelp(said)}`;
    throw new SandboxError(`${language} does not start in the sandbox: ${said}${advice}`);
  }

  private constructor(language: Language, launched: Launched, settings: SandboxSettings) {
    this.language = language;
    this.#settings = settings;
    this.#launched = launched;
    this.#out = new Output(settings.outputBytes);
    this.#err = new Output(settings.outputBytes);
    const { child } = launched;
    const [, stdout, stderr, requests, answers] = child.stdio;
    this.#read(stdout, chunk => this.#out.add(chunk));
    this.#read(stderr, chunk => this.#err.add(chunk));
    this.#read(answers, chunk => this.#hear(chunk));
    requests!.on('error', () => undefined); // it has ended: `#ended` tells
    this.#ended = new Promise(resolve => {
      const end = async (code: number | null) => {
        this.#exitCode = code ?? undefined;
        this.#kill();
        // What was written before the end is read to its end; what others hold open is not waited for.
        await Promise.race([streamsClosed(child), later(GRACE_MS, undefined, { ref: false })]);
        for (const stream of child.stdio) stream?.destroy();
        this.#alive = false;
        this.#notify();
        resolve();
      };
      child.once('exit', code => void end(code));
      child.once('error', error => {
        this.#err.add(Buffer.from(`${error.message}\n`));
        void end(null);
      });
    });
    this.#hold(false);
  }

  get alive(): boolean {
    return this.#alive && this.#reason === undefined;
  }

  async run(program: Omit<Program, 'language'>, timeoutMs = this.#settings.timeoutMs): Promise<Execution> {
    const { source, stdin = '', files = {}, args = [] } = program;
    const began = performance.now();
    this.#ask({ op: 'run', source, stdin, files, args });
    await this.#until(() => false, timeoutMs);
    await this.close();
    const [stdout, stderr] = [this.#out.take(), this.#err.take()];
    const failed = this.#exitCode !== 0;
    const ranOut = this.#answers.some(({ ending }) => ending === 'memory') || this.#heapLimit(stderr.text);
    return {
      ending: this.#reason ?? (failed && ranOut ? 'memory' : endingOf(this.#exitCode)),
      exitCode: this.#reason === undefined ? this.#exitCode : undefined,
      stdout: stdout.text,
      stderr: stderr.text,
      cut: stdout.cut || stderr.cut,
      durationMs: performance.now() - began,
    };
  }

  exec(source: string, timeoutMs?: number): Promise<Evaluation> {
    return this.#evaluate({ op: 'exec', source }, timeoutMs);
  }

  call(name: string, args: readonly unknown[], timeoutMs?: number): Promise<Evaluation> {
    return this.#evaluate({ op: 'call', name, args }, timeoutMs);
  }

  async close(): Promise<void> {
    this.#hold(true);
    this.#kill();
    await this.#ended;
    await this.#launched.cleanUp();
  }

  async #evaluate(request: object, timeoutMs = this.#settings.timeoutMs): Promise<Evaluation> {
    if (!this.alive) throw new SandboxError(`the ${this.language} interpreter has ended; start another one`);
    const began = performance.now();
    const mark = randomBytes(16).toString('hex');
    this.#ask({ ...request, mark });
    const isThere = () => this.#answers.length > 0 && this.#out.endsWith(mark) && this.#err.endsWith(mark);
    await this.#until(isThere, timeoutMs);
    const complete = this.alive;
    if (!complete) await this.close();
    const [answer = {}] = this.#answers.splice(0);
    const [stdout, stderr] = [this.#out, this.#err].map(output => output.take(output.endsWith(mark) ? mark : ''));
    const shown = {
      stdout: stdout!.text,
      stderr: stderr!.text,
      cut: stdout!.cut || stderr!.cut,
      durationMs: performance.now() - began,
    };
    if (complete && answer.ending === 'ok') {
      const value = typeof answer.value === 'string' ? answer.value : undefined;
      return { ...shown, ending: 'ok', value, error: undefined };
    }
    if (complete) {
      const ending = answer.ending === 'memory' ? 'memory' : 'error';
      return { ...shown, ending, value: undefined, error: String(answer.error ?? 'an answer that cannot be read') };
    }
    const ending = this.#reason ?? (this.#heapLimit(shown.stderr) ? 'memory' : endingOf(this.#exitCode));
    const error = this.#reason === undefined ? `the interpreter ended with exit code ${this.#exitCode}` : ending;
    return { ...shown, ending: ending === 'ok' ? 'error' : ending, value: undefined, error };
  }

  #ask(request: object): void {
    (this.#launched.child.stdio[3] as Writable).write(`${JSON.stringify(request)}\n`);
  }

  /** Waits until it is so, or the interpreter has ended, which is brought about when a limit is passed. */
  async #until(isSo: () => boolean, timeoutMs: number): Promise<void> {
    this.#hold(true);
    const watch = setInterval(() => this.#watch(), WATCH_MS);
    const deadline = setTimeout(() => this.#stop('timeout'), timeoutMs);
    try {
      while (this.#alive && !isSo()) {
        await new Promise<void>(resolve => {
          this.#notify = resolve;
        });
      }
    } finally {
      clearInterval(watch);
      clearTimeout(deadline);
      this.#notify = () => undefined;
      this.#hold(false);
    }
  }

  #watch(): void {
    const { memoryMiB, scratchMiB } = this.#settings;
    const own = OWN_MIB[this.language];
    if (memoryOf(this.#launched.child.pid ?? 0) > (memoryMiB + own + scratchMiB) * MIB) this.#stop('memory');
  }

  #stop(reason: Ending): void {
    if (!this.#alive) return;
    this.#reason ??= reason;
    this.#kill();
  }

  /** Ends the process group; with bubblewrap its end takes the whole process namespace along. */
  #kill(): void {
    const { pid } = this.#launched.child;
    if (pid === undefined || !this.#alive) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // ESRCH: nobody is left
    }
  }

  #read(stream: unknown, take: (chunk: Buffer) => void): void {
    const readable = stream as NodeJS.ReadableStream;
    readable.on('error', () => undefined); // a reset connection: `#ended` tells
    readable.on('data', (chunk: Buffer) => {
      take(chunk);
      const most = FLOOD * this.#settings.outputBytes;
      if (this.#out.total > most || this.#err.total > most) this.#stop('output');
      this.#notify();
    });
  }

  #hear(chunk: Buffer): void {
    this.#line += this.#decoder.write(chunk);
    if (this.#line.length > FLOOD * this.#settings.outputBytes) this.#stop('output');
    const lines = this.#line.split('\n');
    this.#line = lines.pop()!;
    this.#answers.push(...lines.map(answerOf));
  }

  /** Node says so and aborts; whatever else says so has failed all the same. */
  #heapLimit(stderr: string): boolean {
    return this.language === 'javascript' && /heap out of memory|Array buffer allocation failed/.test(stderr);
  }

  /** An interpreter that only waits does not keep tokenloop from ending. */
  #hold(on: boolean): void {
    const { child } = this.#launched;
    for (const each of [child, ...child.stdio]) {
      const handle = each as { ref?(): void; unref?(): void } | null;
      if (on) handle?.ref?.();
      else handle?.unref?.();
    }
  }
}

function endingOf(exitCode: number | undefined): Ending {
  if (exitCode === 0) return 'ok';
  if (exitCode === SIGNAL.cpu) return 'timeout';
  return exitCode === undefined || exitCode > 128 ? 'killed' : 'error';
}

function answerOf(line: string): Answer {
  try {
    const answer: unknown = JSON.parse(line);
    return typeof answer === 'object' && answer !== null ? answer : {};
  } catch {
    return {}; // the program wrote there itself: no answer
  }
}

function howToHelp(said: string): string {
  if (/namespace|uid map|Operation not permitted/i.test(said)) {
    return 'user namespaces seem to be forbidden here: allow them, or set isolation none, which runs programs with your own rights';
  }
  const asRoot = process.getuid?.() === 0 ? ' (tokenloop runs as root, the sandbox as nobody)' : '';
  return `is the interpreter readable for the user that runs it${asRoot}? Another one can be named with python or node`;
}

function streamsClosed(child: Launched['child']): Promise<void> {
  return new Promise(resolve => child.once('close', () => resolve()));
}
